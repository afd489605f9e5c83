//! The boot device override of a chassis (specification, 28.12 to 28.14).

/// Number of the boot option parameter that says which events clear the boot flags (specification,
/// table 28-14).
pub(crate) const BOOT_INFO_VALID: u8 = 3;

/// Number of the boot option parameter with the boot flags: device, duration, firmware.
pub(crate) const BOOT_FLAGS: u8 = 5;

/// The boot device of a machine (28.13, parameter 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootDevice {
    /// No override: the firmware's own order.
    None,
    Pxe,
    Disk,
    BiosSetup,
}

/// A boot device and the duration of its override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootOverride {
    pub device: BootDevice,
    /// `true` means for all boots, `false` for the next boot only.
    pub persistent: bool,
    /// `true` means UEFI boot, `false` BIOS boot.
    pub efi: bool,
}

pub(crate) fn flags(boot: BootOverride) -> [u8; 6] {
    let device = match boot.device {
        BootDevice::None => 0x00,
        BootDevice::Pxe => 0x04,
        BootDevice::Disk => 0x08,
        BootDevice::BiosSetup => 0x18,
    };
    let persistent = if boot.persistent { 0x40 } else { 0 };
    let efi = if boot.efi { 0x20 } else { 0 };
    [BOOT_FLAGS, 0x80 | persistent | efi, device, 0, 0, 0]
}

pub(crate) fn read_flags(data: &[u8]) -> Option<BootOverride> {
    // The first two bytes are the parameter version and the parameter; the flags follow. Without
    // the valid bit (0x80) the BMC ignores the device, whatever it is.
    // Bits 5 to 2 of the second byte are the device (table 28-14). The others, such as clearing
    // CMOS and locking the keyboard, may be set by other tools and must not hide the device.
    let (first, second) = (*data.get(2)?, *data.get(3)?);
    let device = match (first & 0x80 != 0, second & 0x3c) {
        (true, 0x04) => BootDevice::Pxe,
        (true, 0x08) => BootDevice::Disk,
        (true, 0x18) => BootDevice::BiosSetup,
        _ => BootDevice::None,
    };
    Some(BootOverride {
        device,
        persistent: first & 0x40 != 0,
        efi: first & 0x20 != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_flags_come_back() {
        for device in [
            BootDevice::None,
            BootDevice::Pxe,
            BootDevice::Disk,
            BootDevice::BiosSetup,
        ] {
            for (persistent, efi) in [(false, false), (true, false), (false, true), (true, true)] {
                let boot = BootOverride {
                    device,
                    persistent,
                    efi,
                };
                let data = [&[0x01, BOOT_FLAGS], &flags(boot)[1..]].concat();
                assert_eq!(read_flags(&data), Some(boot));
            }
        }
        assert_eq!(read_flags(&[1, 5]), None);
    }

    #[test]
    fn uefi_and_persistent_are_the_bits_of_the_field() {
        let boot = BootOverride {
            device: BootDevice::Pxe,
            persistent: true,
            efi: true,
        };
        assert_eq!(flags(boot)[1..3], [0xe0, 0x04]);
    }
}
