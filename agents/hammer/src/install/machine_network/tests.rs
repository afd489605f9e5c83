use proto_mesh::{Image, Install, MachineNetwork};

use super::*;
