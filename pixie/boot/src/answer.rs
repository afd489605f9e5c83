//! The answer to a DHCP message, as the DHCP server of a network or as a ProxyDHCP server.

use std::net::Ipv4Addr;

use proto_wire_dhcp::{Kind, Message, code};

use crate::client::{Client, ClientClass};
use crate::lease::{LeaseError, Pool};
use crate::lease_book::LeaseBook;
use crate::machines::{Machines, Target};
use crate::network::Network;
use crate::range::PoolRange;
use crate::relay::link_of;

/// Sub-option of option 43: discovery of boot servers (PXE 2.1 §2.2.1).
const PXE_DISCOVERY_CONTROL: u8 = 6;
/// Value: use the boot file of this offer, without discovery.
const PXE_USE_BOOT_FILE: u8 = 8;
/// Sub-option of iPXE's option 175: do not wait for a ProxyDHCP server.
const IPXE_NO_PROXY_DHCP: u8 = 176;

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub message: Message,
    /// `true` if the lease book changed and must be on disk before the message is sent.
    pub persist: bool,
}

/// The reason why a message gets no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    #[error("the message is not from a client")]
    NotAClient,
    #[error("the message came over a relay of another network")]
    OtherNetwork,
    #[error("the client took another server's offer")]
    OtherServer,
    #[error("no lease")]
    Lease(#[source] LeaseError),
    #[error("no address range is configured for this kind of client")]
    NoRange,
    #[error("the message needs no answer; a lease ended: {ended}")]
    Noted {
        /// `true` if the lease book changed.
        ended: bool,
    },
    #[error("not a boot client; another server gives the addresses")]
    NotBooting,
    #[error("no boot file for this kind of client")]
    NoBootFile,
}

impl Network {
    /// Answers as the DHCP server of the network.
    ///
    /// # Errors
    /// The reason why nothing is sent. With [`NoAnswer::Noted`] the lease book may have changed.
    pub fn answer(
        &self,
        book: &mut LeaseBook,
        machines: &Machines,
        request: &Message,
        now_ms: u64,
    ) -> Result<Answer, NoAnswer> {
        self.check_origin(request)?;
        let client = Client::of(request, &self.bmc_match);
        let pool = self.pool(&client)?;
        match request.kind {
            Kind::Discover => {
                let wish = request.options.address(code::REQUESTED_ADDRESS);
                let address = book
                    .offer(client.mac, pool, wish, now_ms)
                    .map_err(NoAnswer::Lease)?;
                let message = self.give(request, &client, machines, Kind::Offer, address);
                // An offer is not persisted: after a restart the client simply discovers again.
                Ok(Answer {
                    message,
                    persist: false,
                })
            }
            Kind::Request => self.answer_request(book, machines, request, &client, now_ms),
            Kind::Inform => {
                // The client has an address already, so the answer has neither an address nor a lease
                // time (RFC 2131 §4.3.5).
                let mut message = Message::reply_to(request, Kind::Ack);
                message.ciaddr = request.ciaddr;
                self.add_network(&mut message);
                self.add_boot(&mut message, &client, machines);
                Ok(Answer {
                    message,
                    persist: false,
                })
            }
            // A release names its address in `ciaddr`, a decline in option 50 (RFC 2131, table 5).
            Kind::Release => {
                let ended = book.release(client.mac, request.ciaddr, now_ms);
                Err(NoAnswer::Noted { ended })
            }
            Kind::Decline => {
                let address = request.options.address(code::REQUESTED_ADDRESS);
                let ended = address.is_some_and(|a| book.decline(client.mac, a, now_ms));
                Err(NoAnswer::Noted { ended })
            }
            Kind::Offer | Kind::Ack | Kind::Nak => Err(NoAnswer::NotAClient),
        }
    }

    fn answer_request(
        &self,
        book: &mut LeaseBook,
        machines: &Machines,
        request: &Message,
        client: &Client,
        now_ms: u64,
    ) -> Result<Answer, NoAnswer> {
        // A request that names another server is a refusal of our offer (RFC 2131 §3.1).
        let server = request.options.address(code::SERVER_ID);
        if server.is_some_and(|server| server != self.address) {
            book.forget_offer(client.mac);
            return Err(NoAnswer::OtherServer);
        }
        let pool = self.pool(client)?;
        // A renewing client has its address in `ciaddr` and sends no option (RFC 2131 §4.3.2).
        let wanted = request
            .options
            .address(code::REQUESTED_ADDRESS)
            .unwrap_or(request.ciaddr);
        let lease_ms = u64::from(self.lease_time_s) * 1000;
        // A restarted client names its address and no server (INIT-REBOOT). RFC 2131 §4.3.2 asks
        // for silence if the book does not know it; here it gets the address if that is free, so
        // that machines keep theirs after a loss of the lease file.
        match book.commit(client.mac, pool, wanted, now_ms, lease_ms) {
            Ok(()) => {
                let mut message = self.give(request, client, machines, Kind::Ack, wanted);
                // As in the request (RFC 2131, table 3): the address of a client that renews.
                message.ciaddr = request.ciaddr;
                Ok(Answer {
                    message,
                    persist: true,
                })
            }
            // A refusal makes the client discover at once. Silence would let it use an address of
            // another network until its lease expires.
            Err(_) => {
                let mut message = Message::reply_to(request, Kind::Nak);
                message.options.set(code::SERVER_ID, self.address.octets());
                message.options.set(
                    code::MESSAGE,
                    "this address is not available; discover again",
                );
                Ok(Answer {
                    message,
                    persist: false,
                })
            }
        }
    }

    /// Answers beside another DHCP server: boot clients only, without addresses. A discover on port
    /// 67 gets an offer, a request on port 4011 an acknowledgement.
    ///
    /// # Errors
    /// The reason why nothing is sent.
    pub fn answer_as_proxy(
        &self,
        machines: &Machines,
        request: &Message,
    ) -> Result<Message, NoAnswer> {
        if request.op != proto_wire_dhcp::BOOTP_REQUEST {
            return Err(NoAnswer::NotAClient);
        }
        let kind = match request.kind {
            Kind::Discover => Kind::Offer,
            Kind::Request | Kind::Inform => Kind::Ack,
            _ => return Err(NoAnswer::NotBooting),
        };
        let client = Client::of(request, &self.bmc_match);
        if matches!(client.class, ClientClass::Other | ClientClass::Bmc) {
            return Err(NoAnswer::NotBooting);
        }
        let mut message = Message::reply_to(request, kind);
        message.ciaddr = request.ciaddr;
        message.options.set(code::SERVER_ID, self.address.octets());
        if !self.add_boot(&mut message, &client, machines) {
            return Err(NoAnswer::NoBootFile);
        }
        if !matches!(
            client.class,
            ClientClass::HttpEfi64 | ClientClass::HttpArm64
        ) {
            // PXE firmware ignores a proxy offer without this class. Without the discovery control
            // it would look for a boot server by multicast and time out.
            message.options.set(code::VENDOR_CLASS, "PXEClient");
            let control = [PXE_DISCOVERY_CONTROL, 1, PXE_USE_BOOT_FILE, code::END];
            message.options.set(code::VENDOR, control);
        }
        // PXE 2.1 wants the UUID echoed; some ROMs drop an offer without it.
        if let Some(uuid) = request.options.get(code::CLIENT_UUID) {
            message.options.set(code::CLIENT_UUID, uuid);
        }
        Ok(message)
    }

    /// Checks that the message is from a client of this network, directly or over a relay.
    fn check_origin(&self, request: &Message) -> Result<(), NoAnswer> {
        if request.op != proto_wire_dhcp::BOOTP_REQUEST {
            return Err(NoAnswer::NotAClient);
        }
        // An address of this subnet would be of no use to a client on another one.
        if link_of(request).is_some_and(|link| !self.subnet.contains(&link)) {
            return Err(NoAnswer::OtherNetwork);
        }
        Ok(())
    }

    fn pool(&self, client: &Client) -> Result<PoolRange<'_>, NoAnswer> {
        let (pool, range) = match client.class {
            ClientClass::Bmc => (Pool::Bmcs, &self.bmcs),
            _ => (Pool::Machines, &self.machines),
        };
        let range = range.as_ref().ok_or(NoAnswer::NoRange)?;
        Ok(PoolRange { pool, range })
    }

    /// A message that offers or acknowledges an address.
    fn give(
        &self,
        request: &Message,
        client: &Client,
        machines: &Machines,
        kind: Kind,
        address: Ipv4Addr,
    ) -> Message {
        let mut message = Message::reply_to(request, kind);
        message.yiaddr = address;
        message
            .options
            .set(code::LEASE_TIME, self.lease_time_s.to_be_bytes());
        message
            .options
            .set(code::RENEWAL_TIME, (self.lease_time_s / 2).to_be_bytes());
        // The times that RFC 2131 §4.4.5 recommends for T1 and T2.
        let rebinding = self.lease_time_s / 8 * 7;
        message
            .options
            .set(code::REBINDING_TIME, rebinding.to_be_bytes());
        self.add_network(&mut message);
        self.add_boot(&mut message, client, machines);
        // iPXE otherwise waits some seconds for a ProxyDHCP offer before it goes on.
        if client.class == ClientClass::Ipxe {
            message
                .options
                .set(code::IPXE_ENCAP, [IPXE_NO_PROXY_DHCP, 1, 1]);
        }
        message
    }

    fn add_network(&self, message: &mut Message) {
        let options = &mut message.options;
        options.set(code::SERVER_ID, self.address.octets());
        options.set(code::SUBNET_MASK, self.subnet.netmask().octets());
        options.set(code::BROADCAST, self.subnet.broadcast().octets());
        options.set_addresses(code::ROUTER, self.router.as_slice());
        options.set_addresses(code::DNS, &self.dns);
        options.set_addresses(code::NTP, &self.ntp);
        if let Some(domain) = &self.domain {
            options.set(code::DOMAIN_NAME, domain.as_bytes());
        }
    }

    /// Adds the client's boot file. `false` means that there is none for it.
    fn add_boot(&self, message: &mut Message, client: &Client, machines: &Machines) -> bool {
        let files = &self.files;
        let by_http = |name: &String| format!("{}/assets/{name}", self.http_base());
        let file = match client.class {
            ClientClass::Ipxe => Some(self.script_url(client)),
            ClientClass::PxeBios => files.bios.clone(),
            ClientClass::PxeEfi32 => files.efi32.clone(),
            ClientClass::PxeEfi64 => files.efi64.clone(),
            ClientClass::PxeArm64 => files.arm64.clone(),
            ClientClass::HttpArm64 => files.http_arm64.as_ref().map(by_http),
            ClientClass::HttpEfi64 => match &files.http_uki {
                // A unified image runs no iPXE script, so the boot target is decided here.
                Some(uki) if !machines.needs_script() => {
                    // Without a boot file the firmware goes on to its next boot entry, which is the
                    // disk.
                    boots_hammer(client, machines).then(|| by_http(uki))
                }
                _ => files.http_efi64.as_ref().map(by_http),
            },
            ClientClass::UnknownBoot | ClientClass::Bmc | ClientClass::Other => None,
        };
        let Some(file) = file else { return false };
        if matches!(
            client.class,
            ClientClass::HttpEfi64 | ClientClass::HttpArm64
        ) {
            // UEFI takes the boot file for a URL only if the class is echoed (UEFI 2.10 §24.7.3).
            message.options.set(code::VENDOR_CLASS, "HTTPClient");
        } else {
            // Server and file go into the fixed fields and into options 66 and 67: firmware differs
            // in which of them it reads.
            message.siaddr = self.address;
            message
                .options
                .set(code::TFTP_SERVER, self.address.to_string());
        }
        message.options.set(code::BOOT_FILE, file.as_bytes());
        message.file = file;
        true
    }

    /// URL of iPXE's script. It names the Ethernet address that this answer goes to, so that a
    /// machine with several cards is identified by the one it boots over.
    fn script_url(&self, client: &Client) -> String {
        let mac = client.mac.to_string().replace(':', "-");
        format!("{}/v1/boot.ipxe?mac={mac}", self.http_base())
    }
}

/// `true` if the machine boots the installer. Unknown machines do: the installer registers them.
fn boots_hammer(client: &Client, machines: &Machines) -> bool {
    machines
        .find(client.machine, client.mac)
        .is_none_or(|m| m.target == Target::Hammer)
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
