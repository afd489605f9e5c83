//! Reads what a program tells Prometheus.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

/// One value.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

/// A whole exposition.
#[derive(Debug)]
pub(crate) struct Scrape {
    pub(crate) text: String,
    /// Type by name of the family.
    pub(crate) types: BTreeMap<String, String>,
    pub(crate) samples: Vec<Sample>,
}

/// `GET path` of a listener on loopback: status line and body.
pub(crate) fn get(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

impl Scrape {
    /// Asks a program.
    pub(crate) fn of(address: &str) -> Self {
        let (head, body) = get(address, "/metrics");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("application/openmetrics-text"), "{head}");
        Self::parse(body)
    }

    fn parse(text: String) -> Self {
        let (mut types, mut helped, mut samples) = (BTreeMap::new(), Vec::new(), Vec::new());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.last(), Some(&"# EOF"));
        for line in &lines[..lines.len() - 1] {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                let twice = types.insert(name.to_owned(), kind.to_owned());
                assert!(twice.is_none(), "{name} is there twice");
            } else if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(help.len() > 5, "{line}");
                helped.push(name.to_owned());
            } else if !line.starts_with("# UNIT ") {
                samples.push(sample(line));
            }
        }
        for name in types.keys() {
            assert!(helped.contains(name), "{name} is not explained");
        }
        Self {
            text,
            types,
            samples,
        }
    }

    /// The sum of all values of this name that have these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |it: &&Sample| {
            let same =
                |(name, value): &(&str, &str)| it.labels.get(*name).is_some_and(|has| has == value);
            it.name == name && labels.iter().all(same)
        };
        self.samples.iter().filter(has).map(|it| it.value).sum()
    }

    /// Whether a query for this name finds something, or will once it has happened.
    pub(crate) fn tells(&self, name: &str) -> bool {
        let suffixes = ["_total", "_bucket", "_sum", "_count", "_info"];
        let family = suffixes.iter().find_map(|it| name.strip_suffix(it));
        let is_family = family.is_some_and(|family| self.types.contains_key(family));
        is_family || self.types.contains_key(name) || self.samples.iter().any(|it| it.name == name)
    }

    /// Whether a sample of this name has the label. Without samples any label may come.
    pub(crate) fn may_have(&self, name: &str, label: &str) -> bool {
        let mut samples = self.samples.iter().filter(|sample| sample.name == name);
        let Some(first) = samples.next() else {
            return true;
        };
        first.labels.contains_key(label) || samples.any(|other| other.labels.contains_key(label))
    }

    /// Names are conventional, values have no label of a single machine, agent or user.
    pub(crate) fn check(&self, ids: &[&str]) {
        for (name, kind) in &self.types {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(name.chars().all(plain), "{name}");
            let ours = name.starts_with("metalmesh_") || name.starts_with("process_");
            assert!(ours, "{name}");
            for bad in [
                "_ms",
                "_us",
                "_millis",
                "_milliseconds",
                "_kb",
                "_percent",
                "_minutes",
            ] {
                assert!(!name.ends_with(bad), "{name}: use a base unit");
            }
            // The suffix belongs to counters alone, and the writer adds it.
            assert!(!name.ends_with("_total"), "{name} is a {kind}");
            assert!(kind != "unknown", "{name}");
            for unit in ["duration", "timestamp", "ago"] {
                let is_bare = name.ends_with(unit);
                assert!(!is_bare, "{name} has no unit");
            }
        }
        for it in &self.samples {
            let family = it.name.trim_end_matches("_total");
            if self.types.get(family).is_some_and(|kind| kind == "counter") {
                assert!(it.name.ends_with("_total"), "{it:?}");
            }
            for value in it.labels.values() {
                assert!(uuid::Uuid::try_parse(value).is_err(), "{it:?}");
                let names = ids.iter().any(|id| value.contains(id));
                assert!(!names, "{it:?} names one of {ids:?}");
            }
        }
    }
}

fn sample(line: &str) -> Sample {
    let (head, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = match head.split_once('{') {
        None => (head, BTreeMap::new()),
        Some((name, labels)) => {
            let labels = labels.strip_suffix('}').unwrap();
            let pairs = labels.split("\",").filter(|it| !it.is_empty());
            let pairs = pairs.map(|pair| {
                let (name, value) = pair.split_once("=\"").unwrap();
                (name.to_owned(), value.trim_end_matches('"').to_owned())
            });
            (name, pairs.collect())
        }
    };
    Sample {
        name: name.to_owned(),
        labels,
        value: value.parse().unwrap(),
    }
}
