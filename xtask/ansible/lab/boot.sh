#!/bin/sh
# Boots a host of the lab: process 1 of namespaces of its own becomes the systemd of a root file system.
#   boot.sh BASE DIRECTORY NAME
# BASE is the tree that every host starts from and none changes; what this host changes is below
# DIRECTORY. Runs in fresh mount, PID, UTS, IPC and cgroup namespaces: every mount goes with process 1.
set -eu
base=$1
dir=$2
name=$3
root="$dir/root"

mount --make-rprivate /
mkdir -p "$dir/upper" "$dir/work" "$root"
mount -t overlay -o "lowerdir=$base,upperdir=$dir/upper,workdir=$dir/work" host "$root"
hostname "$name"

mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
# The kernel is shared with the machine that the lab runs on: of its settings only those of the network
# namespace are the host's own.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount --bind "$root/proc/sys/net" "$root/proc/sys/net"
mount -o remount,bind,ro "$root/proc/sys"
if [ -e "$root/proc/sysrq-trigger" ]; then
    mount --bind /dev/null "$root/proc/sysrq-trigger"
fi
mount -t sysfs -o nosuid,nodev,noexec,ro sysfs "$root/sys"
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root/run"

# Devices that no driver of the machine is behind.
mount -t tmpfs -o mode=755,nosuid dev "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777,nosuid,nodev shm "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for device in null:3 zero:5 full:7 random:8 urandom:9; do
    mknod -m 666 "$root/dev/${device%:*}" c 1 "${device#*:}"
done
mknod -m 666 "$root/dev/tty" c 5 0

# A tree of control groups of its own. Where the machine has the first version of them, the second one
# is there without controllers, which is enough: systemd keeps track of its services.
mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 "$root/sys/fs/cgroup"

cd "$root"
pivot_root . mnt
exec env -i container=metalmesh-lab PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    chroot . /bin/sh -c 'umount -l /mnt && exec /lib/systemd/systemd --show-status=0' </dev/null
