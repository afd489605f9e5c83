# Role of a leaf: FRR and the agent, whose state is on a disk; all else is gone after a boot.
mkdir -p /var/lib/metalmesh /etc/metalmesh
# Never if it has something: what a loss of power made of it is to be seen.
if [ -z "$(head -c 65536 /dev/vda | tr -d '\0')" ]; then
    # By its path: the shell has a lesser program of the same name.
    /usr/bin/mke2fs -q -t ext4 /dev/vda
fi
mount -t ext4 /dev/vda /var/lib/metalmesh || {
    echo "no disk: this leaf stays as it is"
    exec sleep 1000000
}
cat >/etc/metalmesh/core.toml <<TOML
rack = "rack-1"
management_ip = "10.99.0.$number"
vtep = "10.0.0.$number"
[bgp]
asn = 42000000$number
spines = ["swp31"]
underlay = ["10.0.0.0/24"]
TOML
: >/etc/frr/bgpd.conf
. /roles/switch
cd /var/lib/metalmesh
# The ticket comes once, over the shell.
until [ -s ticket ]; do
    sleep 1
done
# Its log goes to the first serial port.
while :; do
    METALMESH_LOG=info metalmesh-core run --state-dir core --config /etc/metalmesh/core.toml \
        --ticket-file ticket 2>&1 | tee -a /run/core.log
    sleep 1
done
