# Role of a guest that runs /test with the arguments of /arguments (one a line) as root. What it
# prints goes to the second serial port.
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
