#!/bin/sh
# The first process of the fabric's guest: runs /test with the arguments of /arguments (one a line)
# as root. What it prints goes to the second serial port, the kernel's messages to the first.
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
stty -F /dev/ttyS1 raw -echo
echo "guest ready after $(cut -d' ' -f1 /proc/uptime) s"
set --
while read -r argument; do
    set -- "$@" "$argument"
done </arguments
cd /tmp
/test "$@" </dev/null >/dev/ttyS1 2>&1
echo "metalmesh-fabric-exit $?" >/dev/ttyS1
stty -F /dev/ttyS1 drain 2>/dev/null
poweroff -f
