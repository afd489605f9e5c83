#!/bin/sh
# The first process of the fabric's guest: makes it ready for its role, a script in /roles that the
# kernel's command line names; the test's program if it names none. Messages of the kernel and of the
# scripts go to the first serial port.
export PATH=/usr/bin:/usr/lib/frr HOME=/root METALMESH_FABRIC=guest RUST_BACKTRACE=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
# The size that the agent gives a switch. All namespaces share these tables, and of more than 128 the
# kernel drops the idle ones.
for family in ipv4 ipv6; do
    for size in gc_thresh3=65536 gc_thresh2=32768 gc_thresh1=8192; do
        echo "${size#*=}" > "/proc/sys/net/$family/neigh/default/${size%=*}"
    done
done
ln -sf /proc/self/fd /dev/fd
# vtysh reads its commands from there.
ln -sf /proc/self/fd/0 /dev/stdin
ln -sf /proc/self/fd/1 /dev/stdout
ln -sf /proc/self/fd/2 /dev/stderr
mkdir -p /run/frr /run/netns /var/tmp/frr
chown frr:frr /run/frr /var/tmp/frr
ip link set lo up
# Not by the kernel on demand alone: a module that is missing is to be seen in the log.
for module in $(cat /modules); do
    modprobe "$module" || echo "no module $module"
done
# A terminal would add carriage returns and stop at full screens.
for port in /dev/ttyS1 /dev/ttyS2; do
    stty -F "$port" raw -echo 2>/dev/null
done
# Network cards have the names of the ports that they are: pairs of MAC and name from the command
# line.
for pair in $(echo "$nics" | tr , ' '); do
    for card in /sys/class/net/*; do
        if [ "$(cat "$card/address" 2>/dev/null)" = "${pair%=*}" ]; then
            ip link set "${card##*/}" name "${pair#*=}"
        fi
    done
done
. "/roles/${role:-test}"
