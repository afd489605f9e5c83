//! The administrative user of the installed system, as pure functions on the account files.

/// Name of the user with the tenant's SSH keys.
pub(crate) const USER: &str = "metal";
/// Home directory of the user.
pub(crate) const HOME: &str = "/home/metal";
/// First id of regular users on Linux distributions.
const UID_FIRST: u32 = 1000;
/// Last id that is tried.
const UID_LAST: u32 = 59_999;

/// The account files as text, and the ids of the administrative user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    /// /etc/passwd.
    pub passwd: String,
    /// /etc/shadow.
    pub shadow: String,
    /// /etc/group.
    pub group: String,
    /// /etc/gshadow. Empty if the image has none.
    pub gshadow: String,
    /// User id of the administrative user.
    pub uid: u32,
    /// Group id of the administrative user.
    pub gid: u32,
}

/// Adds the user if it is missing, and sets its password hash. `shell` must exist in the image.
#[must_use]
pub fn with_user(mut a: Accounts, hash: &str, shell: &str) -> Accounts {
    // An image may have the user already; its ids stay, since files of the image may belong to it.
    let known = field_of(&a.passwd, USER, 2).zip(field_of(&a.passwd, USER, 3));
    (a.uid, a.gid) = match known {
        Some(ids) => ids,
        None => {
            let id = free_id(&a.passwd, &a.group);
            push(
                &mut a.passwd,
                &format!("{USER}:x:{id}:{id}:metalmesh:{HOME}:{shell}"),
            );
            push(&mut a.group, &format!("{USER}:x:{id}:"));
            if !a.gshadow.is_empty() {
                push(&mut a.gshadow, &format!("{USER}:!::"));
            }
            (id, id)
        }
    };
    // Last change on day 1 of the epoch: 0 would force a new password at the first login.
    a.shadow = with_line(&a.shadow, USER, &format!("{USER}:{hash}:1:0:99999:7:::"));
    a
}

/// The lowest id that is free both as user id and as group id.
fn free_id(passwd: &str, group: &str) -> u32 {
    let ids = |text: &str| {
        text.lines()
            .filter_map(|l| l.split(':').nth(2)?.parse().ok())
            .collect::<Vec<u32>>()
    };
    let (users, groups) = (ids(passwd), ids(group));
    let is_free = |id: &u32| !users.contains(id) && !groups.contains(id);
    // An image with 59,000 users does not exist; sharing the last id is better than failing.
    (UID_FIRST..=UID_LAST).find(is_free).unwrap_or(UID_LAST)
}

fn field_of(text: &str, name: &str, field: usize) -> Option<u32> {
    let line = text.lines().find(|l| l.split(':').next() == Some(name))?;
    line.split(':').nth(field)?.parse().ok()
}

fn push(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
    text.push('\n');
}

/// The text with `name`'s line replaced, or added.
fn with_line(text: &str, name: &str, line: &str) -> String {
    let mut out = String::new();
    for old in text.lines().filter(|l| l.split(':').next() != Some(name)) {
        push(&mut out, old);
    }
    push(&mut out, line);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_user_is_added() {
        let a = Accounts {
            passwd: "root:x:0:0:root:/root:/bin/bash\ndebian:x:1000:1000::/home/debian:/bin/sh"
                .into(),
            shadow: "root:*:1::::::\n".into(),
            group: "root:x:0:\nstaff:x:1001:\n".into(),
            gshadow: "root:*::\n".into(),
            ..Accounts::default()
        };
        let a = with_user(a, "$6$x", "/bin/bash");
        assert_eq!((a.uid, a.gid), (1002, 1002));
        assert!(
            a.passwd
                .ends_with("/bin/sh\nmetal:x:1002:1002:metalmesh:/home/metal:/bin/bash\n")
        );
        assert!(a.group.ends_with("metal:x:1002:\n") && a.gshadow.ends_with("metal:!::\n"));
        assert!(a.shadow.ends_with("metal:$6$x:1:0:99999:7:::\n"));
        // Again changes nothing but the password.
        let again = with_user(a.clone(), "$6$y", "/bin/sh");
        assert_eq!((&again.passwd, &again.group), (&a.passwd, &a.group));
        assert_eq!(again.shadow, a.shadow.replace("$6$x", "$6$y"));
    }
}
