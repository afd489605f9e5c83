// Drives a node with the published Go client: unary calls and a stream, over HTTP/1.1 and HTTP/2,
// with the compressions that the client offers by default.
//
// Usage: ADMIN_TOKEN=... published_client http://127.0.0.1:PORT
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/metal-stack/api/go/client"
	adminv2 "github.com/metal-stack/api/go/metalstack/admin/v2"
	apiv2 "github.com/metal-stack/api/go/metalstack/api/v2"
	infrav2 "github.com/metal-stack/api/go/metalstack/infra/v2"
)

// watched counts what was spoken, which is what the test is about.
type watched struct {
	http.RoundTripper
	lock sync.Mutex
	seen map[string]int
}

func (w *watched) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(request)
	if err == nil {
		encoding := response.Header.Get("Content-Encoding")
		if encoding == "" {
			encoding = response.Header.Get("Connect-Content-Encoding")
		}
		w.lock.Lock()
		w.seen[strings.TrimSpace(response.Proto+" "+encoding)]++
		w.lock.Unlock()
	}
	return response, err
}

func main() {
	for _, version := range []string{"http1", "http2"} {
		seen, err := drive(os.Args[1], os.Getenv("ADMIN_TOKEN"), version)
		if err != nil {
			fmt.Println(version, "failed:", err)
			os.Exit(1)
		}
		fmt.Println("ok", version, seen)
	}
}

func drive(url, token, version string) (map[string]int, error) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(version == "http1")
	protocols.SetUnencryptedHTTP2(version == "http2")
	transport := &watched{
		RoundTripper: &http.Transport{Protocols: protocols},
		seen:         map[string]int{},
	}
	as := func(token string) (client.Client, error) {
		return client.New(&client.DialConfig{BaseURL: url, Token: token, Transport: transport})
	}
	admin, err := as(token)
	if err != nil {
		return nil, err
	}
	if err := unary(ctx, admin, version); err != nil {
		return nil, err
	}
	return transport.seen, stream(ctx, admin, as, version)
}

func unary(ctx context.Context, admin client.Client, name string) error {
	if _, err := admin.Apiv2().Version().Get(ctx, &apiv2.VersionServiceGetRequest{}); err != nil {
		return err
	}
	wanted := &adminv2.PartitionServiceCreateRequest{
		Partition: &apiv2.Partition{Id: name, Description: strings.Repeat("x", 200)},
	}
	made, err := admin.Adminv2().Partition().Create(ctx, wanted)
	if err != nil {
		return err
	}
	if made.Partition.Meta.Generation != 1 {
		return fmt.Errorf("generation %d", made.Partition.Meta.Generation)
	}
	_, err = admin.Adminv2().Partition().Create(ctx, wanted)
	if err := refused(err, connect.CodeAlreadyExists); err != nil {
		return err
	}
	_, err = admin.Apiv2().Partition().Get(ctx, &apiv2.PartitionServiceGetRequest{Id: "absent"})
	if err := refused(err, connect.CodeNotFound); err != nil {
		return err
	}
	_, err = admin.Apiv2().Partition().Get(ctx, &apiv2.PartitionServiceGetRequest{Id: "x"})
	if err := refused(err, connect.CodeInvalidArgument); err != nil {
		return err
	}
	// Long enough to be worth a compression.
	_, err = admin.Apiv2().Method().List(ctx, &apiv2.MethodServiceListRequest{})
	return err
}

// stream waits for orders to a BMC, hears one, and is ended with its token.
func stream(
	ctx context.Context, admin client.Client, as func(string) (client.Client, error), name string,
) error {
	role := apiv2.InfraRole_INFRA_ROLE_EDITOR
	made, err := admin.Adminv2().Token().Create(ctx, &adminv2.TokenServiceCreateRequest{
		User: new("metal-stack"),
		TokenCreateRequest: &apiv2.TokenServiceCreateRequest{
			Description: "agent", Expires: durationpb.New(time.Hour), InfraRole: &role,
			Labels: &apiv2.Labels{Labels: map[string]string{"metalmesh.dev/partition": name}},
		},
	})
	if err != nil {
		return err
	}
	agent, err := as(made.Secret)
	if err != nil {
		return err
	}
	uuid := "00000000-0000-4000-8000-00000000000" + name[len(name)-1:]
	_, err = agent.Infrav2().Boot().Dhcp(ctx, &infrav2.BootServiceDhcpRequest{
		Uuid: uuid, Partition: name,
	})
	if err != nil {
		return err
	}
	_, err = agent.Infrav2().BMC().UpdateBMCInfo(ctx, &infrav2.UpdateBMCInfoRequest{
		Partition: name,
		BmcReports: []*apiv2.MachineBMCReport{{
			Uuid: uuid,
			Bmc: &apiv2.MachineBMC{
				Address: "10.9.0.1:623", Mac: "02:00:00:00:09:0" + name[len(name)-1:],
				User: "metal", Password: "from-the-agent", PowerState: "ON",
			},
		}},
	})
	if err != nil {
		return err
	}
	orders, err := agent.Infrav2().BMC().WaitForBMCCommand(ctx,
		&infrav2.WaitForBMCCommandRequest{Partition: name})
	if err != nil {
		return err
	}
	defer orders.Close()
	command := apiv2.MachineBMCCommand_MACHINE_BMC_COMMAND_IDENTIFY_LED_ON
	_, err = admin.Adminv2().Machine().BMCCommand(ctx, &adminv2.MachineServiceBMCCommandRequest{
		Uuid: uuid, Command: command,
	})
	if err != nil {
		return err
	}
	if !orders.Receive() {
		return fmt.Errorf("no order: %w", orders.Err())
	}
	order := orders.Msg()
	if order.Uuid != uuid || order.BmcCommand != command {
		return fmt.Errorf("another order: %v", order.BmcCommand)
	}
	_, err = agent.Infrav2().BMC().BMCCommandDone(ctx, &infrav2.BMCCommandDoneRequest{
		CommandId: order.CommandId,
	})
	if err != nil {
		return err
	}
	_, err = admin.Adminv2().Token().Revoke(ctx, &adminv2.TokenServiceRevokeRequest{
		Uuid: made.Token.Uuid, User: made.Token.User,
	})
	if err != nil {
		return err
	}
	for orders.Receive() {
	}
	return refused(orders.Err(), connect.CodeUnauthenticated)
}

func refused(err error, code connect.Code) error {
	told := new(connect.Error)
	if !errors.As(err, &told) || told.Code() != code {
		return fmt.Errorf("%v, %v expected", err, code)
	}
	return nil
}
