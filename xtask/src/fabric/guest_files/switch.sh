# What leaf and spine have in common: the management network, FRR, and a shell for the test over the
# management network, which has no other machine than the test's.
hostname "$role$number"
# By its path: the shell has a lesser program of the same name.
/usr/bin/ip addr add "10.99.0.$number/24" dev mgmt
/usr/bin/ip link set mgmt up
# The plant's cables follow the ports: it reads what happens to them from the second serial port.
# After the end of a line that the last kernel may have left half-written.
printf "\nboot\n" >/dev/ttyS1
/usr/bin/ip -o monitor link >/dev/ttyS1 &
# A shell for everybody who connects.
nc -ll -p 23 -e /usr/bin/sh &
zebra -d -P 0 -f /dev/null
bgpd -d -P 0 -f /etc/frr/bgpd.conf
echo "switch ready after $(cut -d' ' -f1 /proc/uptime) s"
