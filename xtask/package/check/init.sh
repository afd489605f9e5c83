#!/bin/sh
# First process of the guest: moves the system out of the initramfs, whose root nothing can be mounted
# in the place of as the sandboxes of units need it, and becomes systemd.
mount -t tmpfs -o mode=755,size=90% root /mnt
for entry in bin etc home lib lib64 opt root sbin srv usr var; do
    [ -e "/$entry" ] || [ -h "/$entry" ] || continue
    cp -a "/$entry" /mnt/
    # Memory for the next one. Programs and libraries stay until the end.
    case "$entry" in home | opt | root | srv | var) rm -rf "/$entry" ;; esac
done
for entry in dev proc run sys tmp mnt; do mkdir -p "/mnt/$entry"; done
chmod 1777 /mnt/tmp
exec switch_root /mnt /lib/systemd/systemd
