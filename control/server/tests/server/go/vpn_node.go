// A node that comes into a VPN by its key and stays until its standard input ends.
//
// Usage: AUTH_KEY=... vpn_node http://127.0.0.1:PORT NAME. Prints "in" or "refused: ...".
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"tailscale.com/control/ts2021"
	"tailscale.com/net/netmon"
	"tailscale.com/net/tsdial"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Getenv("AUTH_KEY")); err != nil {
		fmt.Println("refused:", err)
		os.Exit(1)
	}
}

func run(server, name, authKey string) error {
	ctx := context.Background()
	public, err := serverKey(server)
	if err != nil {
		return err
	}
	monitor := netmon.NewStatic()
	client, err := ts2021.NewClient(ts2021.ClientOpts{
		ServerURL:    server,
		PrivKey:      key.NewMachine(),
		ServerPubKey: public,
		Dialer:       tsdial.NewDialer(monitor),
		NetMon:       monitor,
		Logf:         func(string, ...any) {},
	})
	if err != nil {
		return err
	}
	node := key.NewNode().Public()
	host := &tailcfg.Hostinfo{Hostname: name, OS: "linux"}
	registered := tailcfg.RegisterResponse{}
	err = post(ctx, client, "/machine/register", node, tailcfg.RegisterRequest{
		Version:  tailcfg.CurrentCapabilityVersion,
		NodeKey:  node,
		Hostinfo: host,
		Auth:     &tailcfg.RegisterResponseAuth{AuthKey: authKey},
		Expiry:   time.Now().Add(time.Hour),
	}, &registered)
	if err != nil {
		return err
	}
	if registered.Error != "" || !registered.MachineAuthorized {
		return fmt.Errorf("not authorized: %s", registered.Error)
	}
	// As long as it is told what changes, it is there.
	response, err := client.Post(ctx, "/machine/map", node, tailcfg.MapRequest{
		Version:   tailcfg.CurrentCapabilityVersion,
		NodeKey:   node,
		DiscoKey:  key.NewDisco().Public(),
		Hostinfo:  host,
		Stream:    true,
		KeepAlive: true,
	})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("no map: %s", response.Status)
	}
	fmt.Println("in")
	go io.Copy(io.Discard, response.Body)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// serverKey asks for the key of the VPN's control server.
func serverKey(server string) (key.MachinePublic, error) {
	url := fmt.Sprintf("%s/key?v=%d", server, tailcfg.CurrentCapabilityVersion)
	response, err := http.Get(url)
	if err != nil {
		return key.MachinePublic{}, err
	}
	defer response.Body.Close()
	keys := tailcfg.OverTLSPublicKeyResponse{}
	err = json.NewDecoder(response.Body).Decode(&keys)
	return keys.PublicKey, err
}

func post(
	ctx context.Context, client *ts2021.Client, path string, node key.NodePublic, what, into any,
) error {
	response, err := client.Post(ctx, path, node, what)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s: %s", response.Status, text)
	}
	return json.NewDecoder(response.Body).Decode(into)
}
