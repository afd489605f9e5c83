# Role of a spine: FRR with a configuration that an operator wrote.
/usr/bin/ip addr add "10.0.0.$number/32" dev lo
sysctl -q -w net.ipv4.ip_forward=1
cat >/etc/frr/bgpd.conf <<FRR
router bgp 42000000$number
 bgp router-id 10.0.0.$number
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 neighbor LEAVES peer-group
 neighbor LEAVES remote-as external
 neighbor LEAVES timers 2 8
 neighbor LEAVES timers connect 2
 neighbor swp1 interface peer-group LEAVES
 neighbor swp2 interface peer-group LEAVES
 address-family ipv4 unicast
  network 10.0.0.$number/32
  neighbor LEAVES activate
 exit-address-family
 address-family l2vpn evpn
  neighbor LEAVES activate
 exit-address-family
FRR
. /roles/switch
# The monitor is to see the ports come up.
sleep 1
for port in swp1 swp2; do
    /usr/bin/ip link set "$port" mtu 9216 up
done
while :; do
    sleep 3600
done
