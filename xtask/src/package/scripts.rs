//! Scripts that dpkg runs when a package is installed, upgraded, removed and purged.
//!
//! They do what debhelper's snippets do, by the same programs, and enable and start nothing: a service of
//! metalmesh needs configuration first. An upgrade restarts what runs.

use super::recipe::Recipe;

/// The scripts of a package by name. Empty for a package without a service.
pub(crate) fn scripts(recipe: &Recipe) -> Vec<(&'static str, String)> {
    if recipe.units.is_empty() {
        return Vec::new();
    }
    vec![
        ("postinst", postinst(recipe)),
        ("prerm", prerm(recipe)),
        ("postrm", postrm(recipe)),
    ]
}

fn apparmor(recipe: &Recipe) -> Option<&'static str> {
    let profiles = recipe.assets.iter();
    let mut names = profiles.filter_map(|asset| asset.to.strip_prefix("etc/apparmor.d/"));
    names.next()
}

fn postinst(recipe: &Recipe) -> String {
    let name = recipe.name;
    let mut text = format!(
        "#!/bin/sh\nset -e\n\n\
         case \"$1\" in\n\
         configure | abort-upgrade | abort-deconfigure | abort-remove)\n    \
         # Users and directories of the service.\n    \
         systemd-sysusers ${{DPKG_ROOT:+--root=\"$DPKG_ROOT\"}} {name}.conf\n    \
         systemd-tmpfiles ${{DPKG_ROOT:+--root=\"$DPKG_ROOT\"}} --create {name}.conf || true\n"
    );
    if let Some(profile) = apparmor(recipe) {
        text.push_str(&format!(
            "    if command -v aa-enabled >/dev/null && aa-enabled --quiet 2>/dev/null; then\n        \
             apparmor_parser --replace --write-cache --skip-bad-cache /etc/apparmor.d/{profile} || true\n    \
             fi\n"
        ));
    }
    for unit in recipe.units {
        text.push_str(&format!(
            "    # Only a unit that somebody enabled has new links after an upgrade.\n    \
             if deb-systemd-helper debian-installed {unit}; then\n        \
             deb-systemd-helper unmask {unit} >/dev/null || true\n        \
             if deb-systemd-helper --quiet was-enabled {unit}; then\n            \
             deb-systemd-helper enable {unit} >/dev/null || true\n        \
             fi\n    \
             fi\n    \
             deb-systemd-helper update-state {unit} >/dev/null || true\n"
        ));
    }
    let main = recipe.units[0];
    text.push_str(&format!(
        "    if [ -d /run/systemd/system ]; then\n        \
         systemctl --system daemon-reload >/dev/null || true\n        \
         # The second word is the version before: an upgrade restarts what runs.\n        \
         if [ -n \"$2\" ]; then\n            \
         deb-systemd-invoke try-restart {main} >/dev/null || true\n        \
         fi\n    \
         fi\n    \
         ;;\nesac\n\nexit 0\n"
    ));
    text
}

fn prerm(recipe: &Recipe) -> String {
    let main = recipe.units[0];
    format!(
        "#!/bin/sh\nset -e\n\n\
         if [ \"$1\" = remove ] && [ -d /run/systemd/system ]; then\n    \
         deb-systemd-invoke stop {main} >/dev/null || true\n\
         fi\n\nexit 0\n"
    )
}

fn postrm(recipe: &Recipe) -> String {
    let units = recipe.units.join(" ");
    let mut text = format!(
        "#!/bin/sh\nset -e\n\n\
         if [ \"$1\" = remove ] && [ -d /run/systemd/system ]; then\n    \
         systemctl --system daemon-reload >/dev/null || true\n\
         fi\n\n\
         if [ \"$1\" = purge ]; then\n    \
         if command -v deb-systemd-helper >/dev/null; then\n        \
         deb-systemd-helper purge {units} >/dev/null || true\n        \
         deb-systemd-helper unmask {units} >/dev/null || true\n    \
         fi\n"
    );
    for unit in recipe.units {
        // Of `systemctl enable`, which deb-systemd-helper does not know of.
        text.push_str(&format!("    rm -f /etc/systemd/system/*.wants/{unit}\n"));
    }
    if let Some(profile) = apparmor(recipe) {
        text.push_str(&format!(
            "    rm -f /etc/apparmor.d/local/{profile}\n    \
             rm -f /var/cache/apparmor/*/{profile}\n"
        ));
    }
    if let Some(data) = recipe.data {
        text.push_str(&format!(
            "    # Data stay, and with them the user whose they are.\n    \
             rmdir --ignore-fail-on-non-empty {data} 2>/dev/null || true\n    \
             rmdir --ignore-fail-on-non-empty /var/lib/metalmesh 2>/dev/null || true\n"
        ));
    }
    for folder in recipe.folders {
        text.push_str(&format!(
            "    rmdir --ignore-fail-on-non-empty {folder} 2>/dev/null || true\n"
        ));
    }
    if let (Some(data), Some(user)) = (recipe.data, recipe.user) {
        let places = recipe.folders.iter().chain(recipe.leavings);
        let tests: String = std::iter::once(&data)
            .chain(places)
            .map(|place| format!("[ ! -e {place} ] && "))
            .collect();
        text.push_str(&format!(
            "    # Its number goes to the next user that is made, who would own and read what is left.\n    \
             if {tests}getent passwd {user} >/dev/null; then\n        \
             userdel {user} >/dev/null 2>&1 || true\n    \
             fi\n"
        ));
    }
    text.push_str("fi\n\nexit 0\n");
    text
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::super::recipe::RECIPES;
    use super::*;

    #[test]
    fn every_script_is_one_of_the_shell() {
        let mut count = 0;
        for recipe in RECIPES {
            for (name, text) in scripts(&recipe) {
                let mut shell = Command::new("sh")
                    .arg("-n")
                    .stdin(Stdio::piped())
                    .spawn()
                    .unwrap();
                let mut input = shell.stdin.take().unwrap();
                input.write_all(text.as_bytes()).unwrap();
                drop(input);
                assert!(
                    shell.wait().unwrap().success(),
                    "{} {name}:\n{text}",
                    recipe.name
                );
                assert!(!text.contains("  start "), "{name} starts nothing");
                count += 1;
            }
        }
        assert_eq!(count, 15);
    }

    #[test]
    fn a_purge_leaves_data_and_their_user() {
        let control = RECIPES
            .iter()
            .find(|recipe| recipe.name == "metalmesh-control")
            .unwrap();
        let text = postrm(control);
        for line in [
            "rmdir --ignore-fail-on-non-empty /var/lib/metalmesh/control",
            "rmdir --ignore-fail-on-non-empty /var/lib/metalmesh 2",
            "if [ ! -e /var/lib/metalmesh/control ] && [ ! -e /etc/metalmesh ] && \
             [ ! -e /var/backups/metalmesh ] && [ ! -e /var/lib/metalmesh/NODE ] && getent passwd metalmesh",
            "userdel metalmesh",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let at = |line: &str| text.find(line).unwrap();
        // An empty directory of configuration keeps no user.
        assert!(at("non-empty /etc/metalmesh") < at("userdel"), "{text}");
        assert!(!text.contains("rm -rf"), "{text}");
    }

    /// A user who can write to a directory above another one's can put a link in its place.
    #[test]
    fn services_have_their_data_beside_each_other_below_a_directory_of_root() {
        let root = crate::root();
        let data: Vec<&str> = RECIPES.iter().filter_map(|recipe| recipe.data).collect();
        assert_eq!(data.len(), 5);
        for recipe in RECIPES {
            let Some(own) = recipe.data else { continue };
            let above = std::path::Path::new(own).parent().unwrap();
            assert_eq!(above, std::path::Path::new("/var/lib/metalmesh"));
            let asset = |suffix: &str| {
                let found = recipe
                    .assets
                    .iter()
                    .find(|asset| asset.to.ends_with(suffix));
                std::fs::read_to_string(root.join(found.unwrap().from)).unwrap()
            };
            let user = recipe.user.unwrap_or("root");
            let made = asset(&format!("tmpfiles.d/{}.conf", recipe.name));
            let line = format!("d {own} 0700 {user} {user} -");
            assert!(made.lines().any(|found| found == line), "{line}\n{made}");
            assert!(!made.contains("d /var/lib/metalmesh "), "{made}");
            let Some(state) = own
                .strip_prefix("/var/lib/")
                .filter(|_| recipe.user.is_some())
            else {
                continue;
            };
            let unit = asset(recipe.units[0]);
            for line in [
                format!("StateDirectory={state}"),
                "StateDirectoryMode=0700".to_owned(),
                "UMask=0077".to_owned(),
            ] {
                assert!(unit.lines().any(|found| found == line), "{line}\n{unit}");
            }
        }
    }
}
