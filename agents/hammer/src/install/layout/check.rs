//! Checks the texts of a layout that become arguments of tools and lines of fstab.
//!
//! Control checks layouts too, but a stored layout may be older than control's checks.

use super::LayoutError;

/// Characters of an option at most, the contract's bound.
const OPTION_LEN_MAX: usize = 128;
/// Bytes of an ext or swap label at most.
const LABEL_LEN_MAX: usize = 16;
/// Bytes of a FAT label at most.
const FAT_LABEL_LEN_MAX: usize = 11;
/// UTF-16 units of a GPT partition name at most.
const PARTITION_LABEL_LEN_MAX: usize = 36;
/// Bytes of a volume's device-mapper name at most: the kernel's limit, less the suffixes that LVM
/// appends to a mirror's parts (`_rimage_0`).
const MAPPER_NAME_LEN_MAX: usize = 118;
/// Highest number of an array that the kernel accepts as `/dev/mdN` without further settings.
const ARRAY_NUMBER_MAX: u32 = 511;

/// Parts of names that LVM reserves.
const LVM_RESERVED: [&str; 10] = [
    "_cdata", "_cmeta", "_corig", "_mimage", "_mlog", "_pmspare", "_rimage", "_rmeta", "_tdata",
    "_tmeta",
];

fn name_error(what: &'static str, name: &str, rule: &'static str) -> LayoutError {
    LayoutError::Name {
        what,
        name: name.to_string(),
        rule,
    }
}

/// Checks an array's path: `/dev/md0` or `/dev/md/NAME`, for which mdadm makes a device without
/// udev.
pub(super) fn array_name(name: &str) -> Result<(), LayoutError> {
    let rest = name.strip_prefix("/dev/md").unwrap_or_default();
    let is_number = || {
        let number = rest.parse::<u32>().ok().filter(|n| *n <= ARRAY_NUMBER_MAX);
        // `/dev/md007` and `/dev/md+7` parse too, but the kernel's node is `/dev/md7`.
        number.is_some_and(|n| n.to_string() == rest)
    };
    let is_name = || {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        rest.strip_prefix('/').is_some_and(|n| {
            (1..=32).contains(&n.len()) && n.chars().all(plain) && !n.starts_with(['-', '.'])
        })
    };
    if is_number() || is_name() {
        return Ok(());
    }
    let rule = "it must be /dev/md and a number up to 511, or /dev/md/NAME";
    Err(name_error("an array", name, rule))
}

pub(super) fn group_name(name: &str) -> Result<(), LayoutError> {
    lvm_name("a volume group", name)
}

pub(super) fn volume_name(name: &str) -> Result<(), LayoutError> {
    lvm_name("a volume", name)?;
    let is_reserved = name.starts_with("snapshot")
        || name.starts_with("pvmove")
        || LVM_RESERVED.iter().any(|part| name.contains(part));
    if is_reserved {
        return Err(name_error("a volume", name, "LVM reserves it"));
    }
    Ok(())
}

/// Checks the length of a volume's device-mapper name, in which hyphens count twice.
pub(super) fn mapper_name(group: &str, volume: &str) -> Result<(), LayoutError> {
    let len = |name: &str| name.len() + name.matches('-').count();
    if len(group) + 1 + len(volume) > MAPPER_NAME_LEN_MAX {
        let rule = "together with its volume group it has more than 118 bytes";
        return Err(name_error("a volume", volume, rule));
    }
    Ok(())
}

fn lvm_name(what: &'static str, name: &str) -> Result<(), LayoutError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+_.-".contains(c);
    let is_good = !name.is_empty()
        && name.chars().all(plain)
        && !name.starts_with('-')
        // The names become directories and links below /dev.
        && !matches!(name, "." | "..");
    if is_good {
        return Ok(());
    }
    let rule = "letters, digits and + _ . - are allowed, and no hyphen at the beginning";
    Err(name_error(what, name, rule))
}

pub(super) fn tag(tag: &str) -> Result<(), LayoutError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_+.-/=!:&#".contains(c);
    if !tag.is_empty() && tag.chars().all(plain) && !tag.starts_with('-') {
        return Ok(());
    }
    let rule = "letters, digits and _ + . - / = ! : & # are allowed, and no hyphen first";
    Err(name_error("a tag", tag, rule))
}

/// Checks sgdisk's code of a partition type: four hexadecimal digits.
pub(super) fn gpt_type(code: &str) -> Result<(), LayoutError> {
    if code.len() == 4 && code.chars().all(|c| c.is_ascii_hexdigit()) {
        return Ok(());
    }
    let rule = "it must be four hexadecimal digits";
    Err(name_error("a partition type", code, rule))
}

pub(super) fn partition_label(label: &str) -> Result<(), LayoutError> {
    let is_good = label.encode_utf16().count() <= PARTITION_LABEL_LEN_MAX
        && !label.chars().any(char::is_control);
    if is_good {
        return Ok(());
    }
    let rule = "it must be at most 36 characters without control characters";
    Err(name_error("a partition", label, rule))
}

/// Checks a label for mkfs, which cuts a too long one for ext and fails for FAT.
pub(super) fn label(format: &str, label: &str) -> Result<(), LayoutError> {
    let (max, rule) = match format {
        "vfat" => (
            FAT_LABEL_LEN_MAX,
            "of vfat it must be at most 11 printable characters without a hyphen first",
        ),
        "ext3" | "ext4" | "swap" => (
            LABEL_LEN_MAX,
            "it must be at most 16 printable characters without a hyphen first",
        ),
        _ => return Ok(()),
    };
    let is_printable = label.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    if label.len() <= max && is_printable && !label.starts_with('-') {
        return Ok(());
    }
    Err(name_error("a file system", label, rule))
}

/// Checks further arguments of mkfs and mdadm. A path among them would be one more device to
/// format.
pub(super) fn create_options(of: &str, options: &[String]) -> Result<(), LayoutError> {
    let is_good = |option: &str| {
        !option.starts_with('/') && option.chars().all(|c| c.is_ascii_graphic() || c == ' ')
    };
    each_option(of, options, "a slash first", is_good)
}

/// Checks mount options for fstab, where white space ends the field.
pub(super) fn mount_options(of: &str, options: &[String]) -> Result<(), LayoutError> {
    let is_good = |option: &str| option.chars().all(|c| c.is_ascii_graphic() && c != '#');
    each_option(of, options, "spaces and #", is_good)
}

fn each_option(
    of: &str,
    options: &[String],
    without: &'static str,
    is_good: impl Fn(&str) -> bool,
) -> Result<(), LayoutError> {
    let is_bad =
        |o: &&String| o.is_empty() || o.chars().count() > OPTION_LEN_MAX || !is_good(o.as_str());
    match options.iter().find(is_bad) {
        None => Ok(()),
        Some(option) => Err(LayoutError::Option {
            of: of.to_string(),
            option: option.clone(),
            without,
        }),
    }
}

/// `true` for absolute paths without `..` whose characters need no escapes in fstab.
pub(super) fn is_mount_point(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    path.starts_with('/') && path.chars().all(plain) && !path.split('/').any(|p| p == "..")
}
