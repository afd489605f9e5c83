//! The user that an installed system is administered as: text in, text out.

/// Whom the tenant's SSH keys belong to.
pub(crate) const USER: &str = "metal";
pub(crate) const HOME: &str = "/home/metal";
/// Where people's ids begin on Linux distributions.
const UID_FIRST: u32 = 1000;
const UID_LAST: u32 = 59_999;

/// The four files, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    pub passwd: String,
    pub shadow: String,
    pub group: String,
    pub gshadow: String,
    /// Of the user.
    pub uid: u32,
    pub gid: u32,
}

/// Adds the user where it is missing, and sets its password's hash. `shell` is one that exists.
#[must_use]
pub fn with_user(mut a: Accounts, hash: &str, shell: &str) -> Accounts {
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
    // A last change of 1 is long ago but not 0, which would force a new password.
    a.shadow = with_line(&a.shadow, USER, &format!("{USER}:{hash}:1:0:99999:7:::"));
    a
}

/// The lowest id that no user and no group has.
fn free_id(passwd: &str, group: &str) -> u32 {
    let ids = |text: &str| {
        text.lines()
            .filter_map(|l| l.split(':').nth(2)?.parse().ok())
            .collect::<Vec<u32>>()
    };
    let (users, groups) = (ids(passwd), ids(group));
    let is_free = |id: &u32| !users.contains(id) && !groups.contains(id);
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
