//! The entries. Add at the end of a group; never renumber.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ErrorKind;

macro_rules! catalogue {
    ($($number:literal $name:ident $kind:ident $title:literal, $hint:literal;)*) => {
        /// An entry of the catalogue, written `MM-<number>`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum ErrorCode { $(#[doc = $title] $name,)* }

        impl ErrorCode {
            /// Every entry.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The number that users search for.
            pub const fn number(self) -> u16 {
                match self { $(Self::$name => $number,)* }
            }
            /// The kind of the error.
            pub const fn kind(self) -> ErrorKind {
                match self { $(Self::$name => ErrorKind::$kind,)* }
            }
            /// One line for lists.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }
            /// The general hint: what to do, with commands in backticks. Words in capitals stand for
            /// values. Empty means that nothing helps. An error may carry a more exact hint.
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$name => $hint,)* }
            }
        }
    };
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MM-{}", self.number())
    }
}

catalogue! {
    // 10xx: any object
    1001 NotFound NotFound "The object was not found", "check the id; an object that you may not see is also reported as not found. Your tenants and projects: `metalmesh whoami`";
    1002 AlreadyExists AlreadyExists "The object exists already", "choose another id, or update the object that exists: `metalmesh edit KIND ID`";
    1003 Conflict Aborted "The object was changed meanwhile", "read the object again, and repeat the change on the new version";
    1004 InvalidField InvalidArgument "A field of the request breaks its rule", "correct the field that the message names, and repeat the call";
    1005 StillInUse FailedPrecondition "The object is still in use", "delete or free the objects that use it first; the message names them";
    1006 UnsupportedVersion Internal "A command of an unknown version", "install the release of the other control nodes on this node; see: `metalmesh cluster status`";
    1007 Unimplemented Unimplemented "Not built yet", "";
    1008 Internal Internal "Something failed inside", "read the log of metalmeshd on the node that answered: journalctl -u metalmeshd";
    1009 Unavailable Unavailable "The service cannot answer now", "try again in a moment; if it lasts, see which control nodes answer: `metalmesh health`";
    1010 DeadlineExceeded DeadlineExceeded "It took too long", "try again in a moment; first check whether the change was made";
    1011 KeyReused InvalidArgument "An idempotency key came back with another request", "use a new idempotency key for a new request";
    1012 KeySpent Aborted "An idempotency key belongs to a request that is over", "use a new idempotency key";
    1013 TooMany ResourceExhausted "A limit is reached", "delete objects of this kind that are not needed; the limits: `metalmesh settings show`";
    1014 QuotaExceeded ResourceExhausted "A quota is used up", "free or delete objects that are not needed, or ask an administrator for a larger quota; the quotas: `metalmesh quota ls`";
    1015 CannotBeTried FailedPrecondition "The call cannot be tried without doing it", "repeat the call without --dry-run";
    // 11xx: authentication and authorisation
    1101 Unauthenticated Unauthenticated "The caller is not known", "log in: `metalmesh login`";
    1102 PermissionDenied PermissionDenied "The caller may not do this", "ask an owner of the project or tenant, or an administrator, for a role that allows it; the methods that the token may call: `metalmesh methods`";
    1103 TokenRevoked Unauthenticated "The token was revoked or has ended", "log in again: `metalmesh login`; for a program, create a new token: `metalmesh token create`";
    1104 LastOwner FailedPrecondition "The last owner cannot go", "make another member owner first: `metalmesh project set-member PROJECT MEMBER --role owner`, or `metalmesh tenant set-member TENANT MEMBER --role owner`";
    1105 PolicyDenied PermissionDenied "A policy of this site refuses it", "ask an administrator, who sees the deciding rule: `metalmesh policy explain METHOD --as CALLER`";
    1106 PolicyFailed PermissionDenied "A policy of this site cannot be evaluated", "tell an administrator, who sees the policy that failed: `metalmesh policy ls`";
    1107 PolicyInvalid InvalidArgument "The policy cannot be put in force", "correct the policy, and check it before it is set: `metalmesh policy check FILE`";
    1108 NoToken PermissionDenied "The call came without a token", "log in: `metalmesh login`; or store a token in the context: `metalmesh context add NAME --token-file FILE`";
    // 12xx: machines
    1201 MachineAllocated FailedPrecondition "The machine is already allocated", "free it first: `metalmesh machine free MACHINE`";
    1202 MachineNotAllocated FailedPrecondition "The machine is not allocated", "see its phase and allocation: `metalmesh machine show MACHINE`";
    1203 NoMachineAvailable ResourceExhausted "No machine is available", "see the machines and what each partition has left: `metalmesh machine ls`; `metalmesh partition capacity`";
    1204 MachineNotReady FailedPrecondition "The machine cannot be allocated now", "see the reason: `metalmesh machine issues MACHINE`";
    1205 MachineLocked FailedPrecondition "The machine is locked", "an administrator can unlock it: `metalmesh machine set-state MACHINE available`";
    1206 SizeReserved ResourceExhausted "The remaining machines are reserved", "ask an administrator for a reservation, or choose another size; the reservations: `metalmesh size reservation ls`";
    1207 WrongPhase FailedPrecondition "The machine is not in a phase that allows it", "see its phase: `metalmesh machine show MACHINE`";
    1208 MachineForeign PermissionDenied "The machine does not belong there", "an agent may report only on its own partition and machine; see the identity that it uses: `metalmesh identity ls`";
    1216 TooManyUnknown FailedPrecondition "Too many unknown machines asked for a boot", "see the unknown machines of the partition: `metalmesh doctor`";
    1217 MachineAlive FailedPrecondition "The machine gives signs of life", "power it off, and repeat the call when it counts as dead: `metalmesh machine power MACHINE off --wait`; `metalmesh machine show MACHINE`";
    1218 NotTwoSwitches FailedPrecondition "The machine does not hear two switches", "check its cables; in a partition whose machines have another number of uplinks: `metalmesh partition update PARTITION --uplinks NUMBER`";
    1219 FirewallNotReplaced FailedPrecondition "The firewall cannot take the place of another one", "see the firewalls of the project, their health and their rules: `metalmesh firewall ls`";
    1230 MachineLeased FailedPrecondition "The machine is leased", "see the lease: `metalmesh machine lease show MACHINE`; its lessee can end it: `metalmesh machine lease hand-back MACHINE`";
    1231 MachineNotLeased FailedPrecondition "The machine is not leased", "see the machines that the project owns or leases: `metalmesh machine lease ls`";
    1232 LeaseLimited PermissionDenied "The lease does not allow it", "ask the machine's owner, who can extend the lease or its limit: `metalmesh machine lease extend MACHINE --until TIME`";
    1233 MachineReserved FailedPrecondition "A node allocation holds the machine", "see the node allocations: `metalmesh node-allocation ls`";
    1234 TenureRefused PermissionDenied "The project's relation to the machine does not allow it", "see whose the machine is: `metalmesh machine lease show MACHINE`";
    // 13xx: images, sizes, layouts
    1301 ImageIdInvalid InvalidArgument "An image id is <os>-<major>[.<minor>[.<patch>]]", "name it like debian-12.0.20260101";
    1302 ImageNotUsable FailedPrecondition "The image cannot be installed", "choose a usable image: `metalmesh image ls`";
    1303 ImageWithoutDigest FailedPrecondition "The image has no digest", "let control compute it: `metalmesh image update ID --url URL`; or set it: `metalmesh image update ID --digest sha256:HEX`";
    1304 SizesOverlap InvalidArgument "Two sizes would match the same machine", "change the constraints so that they exclude each other: `metalmesh size update SIZE --constraint KIND=MIN-MAX`";
    1305 LayoutDoesNotFit FailedPrecondition "The filesystem layout does not fit the machine", "choose another filesystem layout or size: `metalmesh filesystem ls`";
    1306 LayoutsCollide InvalidArgument "Two layouts would match the same size and image", "change the constraints of one layout so that they exclude each other: `metalmesh filesystem ls`";
    1307 ImageExcluded InvalidArgument "The size does not allow this image", "see the images that the size allows: `metalmesh size images show SIZE`";
    1308 ImageDigestNotFound InvalidArgument "The digest of the image cannot be found", "correct the URL, or set the digest: `metalmesh image create ID --url URL --digest sha256:HEX`; in a document, set the label metalmesh.dev/digest to sha256:HEX";
    // 14xx: networks and addresses
    1401 NetworkFieldNotAllowed InvalidArgument "A field does not belong to this type of network", "leave out the field that the message names";
    1402 NetworkFieldMissing InvalidArgument "A field is missing for this type of network", "set the field that the message names";
    1403 PrefixOverlap AlreadyExists "The prefix overlaps another network", "choose another prefix; the networks and their prefixes: `metalmesh network ls`";
    1404 PrefixesExhausted ResourceExhausted "No free prefix is left", "delete child networks that are not needed, or ask an administrator to add a prefix to the parent network: `metalmesh network ls`";
    1405 AddressesExhausted ResourceExhausted "No free address is left", "delete addresses that are not used: `metalmesh ip ls`; `metalmesh ip rm IP`";
    1406 NumbersExhausted ResourceExhausted "A pool of numbers is used up", "delete networks or free machines that are not needed: `metalmesh network ls`; `metalmesh machine ls`";
    1407 AddressNotInNetwork InvalidArgument "The address is not in the network", "see the prefixes of the network: `metalmesh network show NETWORK`";
    1408 AddressInUse FailedPrecondition "The address is in use", "choose another address, or free the machine that has it: `metalmesh ip show IP`";
    1409 NetworkNotAllowed InvalidArgument "The network cannot be used for this", "see the networks that you can use: `metalmesh network ls`";
    1410 NoSuperNetwork FailedPrecondition "The partition has no network to take child networks from", "an administrator creates one: `metalmesh network create --type super --partition PARTITION --prefix CIDR`";
    1411 NumberCooling FailedPrecondition "The number was released a moment ago by another owner", "choose another number, or try again after its cool-down";
    1412 HasMeshAgent FailedPrecondition "An agent of the mesh serves this", "stop that agent and revoke its identity first, so that only one agent reports on it: `metalmesh identity ls`; `metalmesh identity revoke IDENTITY`";
    1413 AddressTaken InvalidArgument "The address is taken", "choose another address, or leave it out to get a free one";
    1414 AddressAmbiguous FailedPrecondition "The project has this address in several networks", "name the namespace, which is the project's id or none: `metalmesh ip rm IP --namespace NAMESPACE`";
    // 15xx: agents, tickets, certificates
    1501 TicketUnknown Unauthenticated "The ticket is unknown or its secret is wrong", "create a new ticket: `metalmesh join create KIND --partition PARTITION --id ID --key-sha256 HEX`";
    1502 TicketUsed Unauthenticated "The ticket was used before", "create a new ticket: `metalmesh join create KIND --partition PARTITION --id ID --key-sha256 HEX`";
    1503 TicketExpired Unauthenticated "The ticket has ended", "create a new ticket: `metalmesh join create KIND --partition PARTITION --id ID --key-sha256 HEX`";
    1504 TicketRevoked Unauthenticated "The ticket was revoked", "create a new ticket: `metalmesh join create KIND --partition PARTITION --id ID --key-sha256 HEX`";
    1505 TicketForeign Unauthenticated "The ticket is bound to another key or machine", "use the ticket on the host that it was created for, or create one for this host: `metalmesh join create KIND --partition PARTITION --id ID --key-sha256 HEX`";
    1506 CertificateRevoked Unauthenticated "The certificate was revoked", "join again with a new ticket: `metalmesh join create KIND --partition PARTITION --id ID --key-sha256 HEX`; with the flag --reenrol if the identity was revoked";
    1507 StaleGeneration Aborted "A newer generation is there already", "read the desired state again; an agent does so by itself";
    1508 SwitchUnknown NotFound "The switch did not register yet", "start metalmesh-core on the switch; the switches that have registered: `metalmesh switch ls`";
    1509 SwitchesDiffer FailedPrecondition "One switch cannot stand in for the other", "compare the two switches: `metalmesh switch show SWITCH`";
    1510 KeyNotNew FailedPrecondition "A new key is wanted of this identity", "the agent makes a new key by itself; if it does not, restart it";
    1511 IdentityAway FailedPrecondition "The identity has no certificate now", "wait until its agent is back, or revoke it: `metalmesh identity show IDENTITY`; `metalmesh identity revoke IDENTITY`";
    1512 CaRotationOpen FailedPrecondition "The certificate authority is being replaced already", "see the progress of the rotation: `metalmesh ca show`; shorten its overlap: `metalmesh ca rotate --force`";
    1513 TpmUnproved Unauthenticated "The ticket is bound to a TPM, and the caller did not prove to sit at it", "start the agent on the host with that TPM; on a host, the agent's command tpm prints the TPM's fingerprint";
    1514 NonceRefused Unauthenticated "The machine did not return what its BMC holds", "check that the machine is the one behind that BMC: `metalmesh machine issues MACHINE`";
    1515 NonceAwaited Unavailable "The machine's BMC has not been given a nonce yet, or the machine does not see it yet", "wait: the machine asks again by itself; the orders of its BMC: `metalmesh task ls`";
    1516 SwitchNotReady FailedPrecondition "Another switch of its machines is not ready to take the traffic", "see what differs there: `metalmesh switch diff SWITCH`; or move the traffic all the same: `metalmesh switch drain SWITCH --force`";
    1517 IdentityRevoked FailedPrecondition "The identity of this agent was revoked", "see why: `metalmesh identity show IDENTITY`; if the agent may join again, create a ticket that says so: `metalmesh join create KIND --partition PARTITION --id ID --key-sha256 HEX --reenrol`";
    // 16xx: orders to hardware
    1601 OrderClosed FailedPrecondition "The order is over already", "give a new order; the orders and their ends: `metalmesh task ls`";
    1602 OrderExpired DeadlineExceeded "The BMC did not answer in time", "check the BMC and its agent, then repeat the order: `metalmesh machine bmc MACHINE`";
    1603 NoBmc FailedPrecondition "The machine has no known BMC", "wait for a report of the BMC agent: `metalmesh machine bmc MACHINE`; the agents: `metalmesh doctor --only agents`";
    1607 BmcContested FailedPrecondition "More than one BMC claims to be the machine's", "find out which BMC is in the machine, then: `metalmesh machine confirm-bmc MACHINE ADDRESS`";
    // 17xx: watches
    1701 WatchCompacted Aborted "Changes from so long ago are not kept", "list again, and watch from the revision of that list";
    1702 WatchTooSlow Unavailable "The watch was read too slowly", "resume from the last revision, and read faster";
    1703 WatchRightsChanged Aborted "The caller may see other objects than before", "list again, and watch from the revision of that list";
    // 18xx: the control nodes
    1801 MembershipRefused FailedPrecondition "The control nodes cannot be changed so", "see the control nodes and their roles: `metalmesh cluster status`";
    1802 NotEnabled FailedPrecondition "Not every control node knows this yet", "install the same release on every control node; see: `metalmesh cluster status`";
    1803 ClocksDiffer FailedPrecondition "The operator's clock and the control node's do not agree", "correct the wrong clock, for example with timedatectl set-ntp true; then repeat the command";
    1805 NotReconciled FailedPrecondition "The restored state was not reconciled yet", "compare the restored state with the hardware, then let control go on: `metalmesh cluster reconcile-after-restore`";
    1804 NotRestored FailedPrecondition "Nothing waits to be reconciled", "needed only once, after metalmeshd restore; see: `metalmesh cluster status`";
    1806 WrongRolloutState FailedPrecondition "The rollout is in another state", "see the rollout: `metalmesh firewall rollout status`";
    // 19xx: services beside control
    1901 NoVpn FailedPrecondition "No VPN is configured", "set [vpn] in the configuration of metalmeshd, and restart it";
    1902 VpnFailed Unavailable "The VPN does not answer", "check the VPN's control server, then repeat the call: `metalmesh doctor`";
    // 20xx: pools and claims
    2001 ClaimOver FailedPrecondition "The claim is over, or its host is being wiped", "see its state: `metalmesh claim show CLAIM`; a new claim: `metalmesh claim create NAME`";
    2002 ClaimInstalled FailedPrecondition "The claim has an installed system", "take the image away first, which wipes the host: `metalmesh claim update CLAIM --no-image`";
    2003 ClaimNotActive FailedPrecondition "The claim has no running system", "see its state and conditions: `metalmesh claim show CLAIM`";
    2004 ClaimPaused FailedPrecondition "The claim is paused", "end the pause: `metalmesh claim update CLAIM --resume`";
    2005 ClaimNotPaused FailedPrecondition "The claim is not paused", "its present owner pauses it first: `metalmesh claim update CLAIM --pause`";
    2006 HostBound FailedPrecondition "A claim has the host", "wait until the claim is deleted, or take the host away from it: `metalmesh pool host rm MACHINE --force`";
    2007 HostOfPool FailedPrecondition "The machine is a host of a pool", "projects claim it: `metalmesh claim create NAME`; an administrator takes it out of the pool: `metalmesh pool host rm MACHINE`";
    2008 MachineOwned FailedPrecondition "A project owns the machine", "clear its owner first: `metalmesh machine owner clear MACHINE`";
}
