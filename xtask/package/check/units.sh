#!/bin/sh
# Starts every service of the packages under its unit, as an operator does by hand: control, then the
# agents with tickets of that control, then the rules of a firewall. Prints what it did; the last line has
# the exit code, and the guest is powered off.
set -u
code=0
export METALMESH_API_URL=http://127.0.0.1:4443
export METALMESH_TOKEN_FILE=/run/metalmesh-check.token

failed() {
    echo "FAILED: $*"
    code=1
}

# Waits until a command succeeds: an emulated processor is slow.
until_good() {
    deadline=$(($(date +%s) + 120))
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -lt "$deadline" ] || return 1
        sleep 0.2
    done
}

# Starts a unit. It must be active, and still be so without a restart when it has joined.
start() {
    unit=$1
    pattern=$2
    systemctl start "$unit" || { failed "$unit does not start"; journal "$unit"; return 1; }
    until_good has_logged "$unit" "$pattern" || { failed "$unit: no $pattern"; journal "$unit"; return 1; }
    restarts=$(systemctl show -P NRestarts "$unit")
    state=$(systemctl is-active "$unit")
    if [ "$state" = active ] && [ "$restarts" = 0 ]; then
        echo "$unit works in its sandbox: $(systemctl show -P User "$unit")," \
            "capabilities $(systemctl show -P CapabilityBoundingSet "$unit" | tr ' ' ',')"
    else
        failed "$unit is $state after $restarts restarts"
        journal "$unit"
    fi
}

has_logged() { journalctl -u "$1" -o cat --no-pager | grep -q "$2"; }

journal() { journalctl -u "$1" --no-pager | tail -n 30; }

# A ticket for an agent: its key is made by its user, and the ticket is for that key.
join() {
    kind=$1
    user="metalmesh-$kind"
    key=$(runuser -u "$user" -- "$user" key --state-dir "/var/lib/metalmesh/$kind") ||
        { failed "$user key"; return 1; }
    ticket="/etc/metalmesh/$kind.ticket"
    metalmesh join create "$kind" --partition lab --id "$kind-1" --key-sha256 "$key" --out "$ticket" ||
        { failed "no ticket for $kind"; return 1; }
    chown "$user:" "$ticket"
}

network() {
    modprobe -a dummy veth vrf vxlan bridge nf_tables 2>/dev/null
    ip link set lo up
    ip link add swp1 type veth peer name machine1 && ip link set swp1 up && ip link set machine1 up
    ip link add eth1 type dummy && ip address add 10.77.1.2/24 dev eth1 && ip link set eth1 up
}

init() {
    runuser -u metalmesh -- metalmeshd init --config /etc/metalmesh/metalmeshd.toml \
        --token-file /var/lib/metalmesh/control/admin.token "$@"
}

control() {
    echo 'data_dir = "/var/lib/metalmesh/control"' >/etc/metalmesh/metalmeshd.toml
    # Nobody sets the clock of this machine, and its disk is its memory.
    init --accept clock --accept disk || init || failed "metalmeshd init"
    install -m 0600 /var/lib/metalmesh/control/admin.token "$METALMESH_TOKEN_FILE"
    start metalmeshd.service . || return 1
    state=$(stat -c '%U %a' /var/lib/metalmesh /var/lib/metalmesh/control | tr '\n' ' ')
    [ "$state" = 'root 755 metalmesh 700 ' ] || failed "the data directory is $state"
    until_good metalmesh health || { failed "control does not answer"; journal metalmeshd.service; return 1; }
    metalmesh version
    metalmesh partition create lab || failed "no partition"
}

core() {
    sed -i 's/^#: \(rack\|management_ip\|vtep\) /\1 /' /etc/metalmesh/core.toml
    join core && start metalmesh-core.service 'started'
    # It has read the kernel by netlink, and reported what it saw.
    until_good is_registered || failed "control does not know the switch"
}

is_registered() { metalmesh --all switch ls | grep -q core-1; }

bmc() {
    cat >/etc/metalmesh/bmc-credentials.toml <<'END'
[default]
user = "admin"
password = "secret"
END
    chown metalmesh-bmc: /etc/metalmesh/bmc-credentials.toml
    chmod 0600 /etc/metalmesh/bmc-credentials.toml
    join bmc && start metalmesh-bmc.service 'working'
}

pixie() {
    mkdir -p /usr/lib/metalmesh/boot
    [ -e /usr/lib/metalmesh/boot/vmlinuz ] || echo kernel >/usr/lib/metalmesh/boot/vmlinuz
    [ -e /usr/lib/metalmesh/boot/initramfs.cpio.zst ] || echo image >/usr/lib/metalmesh/boot/initramfs.cpio.zst
    cat >>/etc/metalmesh/pixie.toml <<'END'
[[network]]
interface = "eth1"
address = "10.77.1.2"
subnet = "10.77.1.0/24"
range = ["10.77.1.100", "10.77.1.199"]
END
    join pixie && start metalmesh-pixie.service 'serving'
    # The ports of firmware, without root.
    for port in 67 69; do
        ss --udp --listening --numeric | grep -q ":$port " || failed "pixie does not listen at port $port"
    done
}

firewall() {
    cat >/etc/firewall-controller/config.yaml <<'END'
name: check
sources:
  static:
    firewall:
      networks:
      - {networkID: internet, networkType: external, interfaces: [eth1]}
controllers:
  firewall: {source: static}
END
    start metalmesh-firewall.service 'in force'
    [ "$(cat /proc/sys/net/ipv4/ip_forward)" = 1 ] || failed "forwarding is not open"
    systemctl is-active metalmesh-closed.service >/dev/null || failed "metalmesh-closed.service did not run"
    [ -s /etc/nftables/firewall-controller.v4 ] || failed "the rules are not written as text"
}

network
control && { core; bmc; pixie; }
firewall
for unit in metalmeshd metalmesh-core metalmesh-bmc metalmesh-pixie metalmesh-firewall; do
    systemctl stop "$unit.service" || failed "$unit does not stop"
    result=$(systemctl show -P Result "$unit.service")
    [ "$result" = success ] || failed "$unit ended with $result"
done
echo "metalmesh-fabric-exit $code"
systemctl poweroff --force
