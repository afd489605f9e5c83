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
            /// The general hint. An error may carry a more exact one.
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
    1001 NotFound NotFound "The object was not found", "check the id, and that you may see it";
    1002 AlreadyExists AlreadyExists "The object exists already", "choose another id, or update it";
    1003 Conflict Aborted "The object was changed meanwhile", "read it again and repeat the change";
    1004 InvalidField InvalidArgument "A field of the request breaks its rule", "correct the field and repeat";
    1005 StillInUse FailedPrecondition "The object is still in use", "remove what uses it first";
    1006 UnsupportedVersion Internal "A command of an unknown version", "upgrade this node";
    1007 Unimplemented Unimplemented "Not built yet", "";
    1008 Internal Internal "Something failed inside", "look into the log of metalmeshd for the cause";
    1009 Unavailable Unavailable "The service cannot answer now", "try again in a moment";
    1010 DeadlineExceeded DeadlineExceeded "It took too long", "try again in a moment";
    1011 KeyReused InvalidArgument "An idempotency key came back with another request", "use a new key for a new request";
    1012 KeySpent Aborted "An idempotency key belongs to a request that is over", "use a new key";
    1013 TooMany ResourceExhausted "A limit is reached", "remove some first";
    1014 QuotaExceeded ResourceExhausted "A quota is used up", "free something first, or ask an admin for more: metalmesh quota show";
    1015 CannotBeTried FailedPrecondition "The call cannot be tried without doing it", "leave the dry run out";
    // 11xx: authentication and authorisation
    1101 Unauthenticated Unauthenticated "The caller is not known", "log in: metalmesh context";
    1102 PermissionDenied PermissionDenied "The caller may not do this", "ask for a role that allows it";
    1103 TokenRevoked Unauthenticated "The token was revoked or has ended", "create a new one: metalmesh token create";
    1104 LastOwner FailedPrecondition "The last owner cannot go", "make another member owner first";
    1105 PolicyDenied PermissionDenied "A policy of this site refuses it", "ask an administrator; they see why: metalmesh policy explain";
    1106 PolicyFailed PermissionDenied "A policy of this site cannot be evaluated", "tell an administrator; they correct it: metalmesh policy ls";
    1107 PolicyInvalid InvalidArgument "The policy cannot be put in force", "try it first: metalmesh policy check <file>";
    1108 NoToken PermissionDenied "The call came without a token", "log in: metalmesh login; or put a token into the context: metalmesh context add";
    // 12xx: machines
    1201 MachineAllocated FailedPrecondition "The machine is already allocated", "free it first: metalmesh machine free <id>";
    1202 MachineNotAllocated FailedPrecondition "The machine is not allocated", "look at it: metalmesh machine show <id>";
    1203 NoMachineAvailable ResourceExhausted "No machine is available", "see what is there: metalmesh machine ls; metalmesh partition capacity";
    1204 MachineNotReady FailedPrecondition "The machine cannot be allocated now", "see why: metalmesh machine show <id>";
    1205 MachineLocked FailedPrecondition "The machine is locked", "an admin can unlock it: metalmesh machine set-state <id> available";
    1206 SizeReserved ResourceExhausted "The remaining machines are reserved", "ask an admin for a reservation";
    1207 WrongPhase FailedPrecondition "The machine is not in a phase that allows it", "see its phase: metalmesh machine show <id>";
    1208 MachineForeign PermissionDenied "The machine does not belong there", "an agent may only speak for its own partition and machine";
    1216 TooManyUnknown FailedPrecondition "Too many unknown machines asked for a boot", "see who they are: metalmesh doctor";
    1217 MachineAlive FailedPrecondition "The machine gives signs of life", "power it off, and wait until it is dead: metalmesh machine show <id>";
    1218 NotTwoSwitches FailedPrecondition "The machine does not hear two switches", "look at its cables; where machines have other uplinks: metalmesh partition update <id> --uplinks <number>";
    // 13xx: images, sizes, layouts
    1301 ImageIdInvalid InvalidArgument "An image id is <os>-<major>[.<minor>[.<patch>]]", "for example debian-12.0.20260101";
    1302 ImageNotUsable FailedPrecondition "The image cannot be installed", "list usable images: metalmesh image ls";
    1303 ImageWithoutDigest FailedPrecondition "The image has no digest", "have control find it: metalmesh image update <id> --url <url>; or give it: metalmesh image update <id> --digest sha256:<hex>";
    1304 SizesOverlap InvalidArgument "Two sizes would match the same machine", "change the constraints so that they exclude each other";
    1305 LayoutDoesNotFit FailedPrecondition "The filesystem layout does not fit the machine", "choose another layout or size";
    1306 LayoutsCollide InvalidArgument "Two layouts would match the same size and image", "change the constraints so that they exclude each other";
    1307 ImageExcluded InvalidArgument "The size does not allow this image", "look at the size's image constraints";
    1308 ImageDigestNotFound InvalidArgument "The digest of the image cannot be found", "correct the url, or set the label metalmesh.dev/digest to sha256:<hex> of the file: metalmesh image create --digest";
    // 14xx: networks and addresses
    1401 NetworkFieldNotAllowed InvalidArgument "A field does not belong to this type of network", "leave it out";
    1402 NetworkFieldMissing InvalidArgument "A field is missing for this type of network", "give it";
    1403 PrefixOverlap AlreadyExists "The prefix overlaps another network", "choose another prefix";
    1404 PrefixesExhausted ResourceExhausted "No free prefix is left", "add a prefix to the parent network, or delete child networks";
    1405 AddressesExhausted ResourceExhausted "No free address is left", "delete unused addresses: metalmesh ip ls";
    1406 NumbersExhausted ResourceExhausted "A pool of numbers is used up", "delete unused networks or machines";
    1407 AddressNotInNetwork InvalidArgument "The address is not in the network", "see the prefixes: metalmesh network show <id>";
    1408 AddressInUse FailedPrecondition "The address is in use", "choose another, or free the machine that has it";
    1409 NetworkNotAllowed InvalidArgument "The network cannot be used for this", "see the networks you can use: metalmesh network ls";
    1410 NoSuperNetwork FailedPrecondition "The partition has no network to take child networks from", "an admin creates one: metalmesh network create --type super";
    1411 NumberCooling FailedPrecondition "The number was released a moment ago by another owner", "choose another, or wait until it has cooled down";
    1412 HasMeshAgent FailedPrecondition "An agent of the mesh serves this", "stop it and revoke its identity first, so that one agent speaks for one thing: metalmesh identity ls";
    1413 AddressTaken InvalidArgument "The address is taken", "choose another, or leave it out for any free one";
    1414 AddressAmbiguous FailedPrecondition "The project has this address in several networks", "name the namespace: metalmesh ip rm <ip> --namespace <project>|none";
    // 15xx: agents, tickets, certificates
    1501 TicketUnknown Unauthenticated "The ticket is unknown or its secret is wrong", "make a new one: metalmesh join create";
    1502 TicketUsed Unauthenticated "The ticket was used before", "make a new one: metalmesh join create";
    1503 TicketExpired Unauthenticated "The ticket has ended", "make a new one: metalmesh join create";
    1504 TicketRevoked Unauthenticated "The ticket was revoked", "make a new one: metalmesh join create";
    1505 TicketForeign Unauthenticated "The ticket is bound to another key or machine", "use the ticket where it was made for";
    1506 CertificateRevoked Unauthenticated "The certificate was revoked", "join again with a new ticket";
    1507 StaleGeneration Aborted "A newer generation is there already", "read the desired state again";
    1508 SwitchUnknown NotFound "The switch did not register yet", "start its core agent";
    1509 SwitchesDiffer FailedPrecondition "One switch cannot stand in for the other", "compare them: metalmesh switch show <id>";
    1510 KeyNotNew FailedPrecondition "A new key is wanted of this identity", "the agent makes one by itself; if it does not, restart it";
    1511 IdentityAway FailedPrecondition "The identity has no certificate now", "wait until its agent is back, or revoke it: metalmesh identity show <id>";
    1512 CaRotationOpen FailedPrecondition "The certificate authority is being replaced already", "see how far it is: metalmesh ca show; hurry it: metalmesh ca rotate --force";
    1513 TpmUnproved Unauthenticated "The ticket is bound to a TPM, and the caller did not prove to sit at it", "start the agent on the host with that TPM: see its fingerprint with <agent> tpm";
    1514 NonceRefused Unauthenticated "The machine did not return what its BMC holds", "see that the machine is the one behind that BMC: metalmesh machine issues <id>";
    1515 NonceAwaited Unavailable "The machine's BMC has not been given a nonce yet, or the machine does not see it yet", "the machine asks again by itself; see its BMC's orders: metalmesh machine show <id>";
    // 16xx: orders to hardware
    1601 OrderClosed FailedPrecondition "The order is over already", "give a new order";
    1602 OrderExpired DeadlineExceeded "The BMC did not answer in time", "check the BMC and its agent, then repeat";
    1603 NoBmc FailedPrecondition "The machine has no known BMC", "wait for a report of the BMC agent";
    1607 BmcContested FailedPrecondition "More than one BMC claims to be the machine's", "find out which is right, then: metalmesh machine confirm-bmc MACHINE ADDRESS";
    // 17xx: watches
    1701 WatchCompacted Aborted "Changes from so long ago are not kept", "list again, and watch from the revision of that list";
    1702 WatchTooSlow Unavailable "The watch was read too slowly", "go on from the last revision, and read faster";
    1703 WatchRightsChanged Aborted "The caller may see other objects than before", "list again, and watch from the revision of that list";
    // 18xx: the control nodes
    1801 MembershipRefused FailedPrecondition "The control nodes cannot be changed so", "see them: metalmesh cluster status";
    1802 NotEnabled FailedPrecondition "Not every control node knows this yet", "upgrade every control node; see: metalmesh cluster status";
    1803 ClocksDiffer FailedPrecondition "The operator's clock and the control node's do not agree", "set the wrong clock right, for example timedatectl set-ntp true; then repeat it";
    1805 NotReconciled FailedPrecondition "The restored state was not reconciled yet", "compare and let it go on: metalmesh cluster reconcile-after-restore";
    1804 NotRestored FailedPrecondition "Nothing waits to be reconciled", "it is needed once after metalmeshd restore; see: metalmesh cluster status";
    // 19xx: services beside control
    1901 NoVpn FailedPrecondition "No VPN is configured", "set [vpn] in the configuration of metalmeshd";
    1902 VpnFailed Unavailable "The VPN does not answer", "look at its control server, then repeat";
}
