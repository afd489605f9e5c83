//! The chain of the trail: records fit or they do not.

use anyhow::{Context as _, Result, bail, ensure};
use proto_public::metalmesh::admin::v1::{AuditAnchor, AuditPart, AuditRecord};
use proto_types::{AuditGaps, AuditHash, AuditLine, AuditPhase, RETENTION_METHOD, Timestamp};
use serde::{Deserialize, Serialize};

/// Where the chain of the records that are kept begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Anchor {
    #[serde(with = "as_text")]
    pub(super) hash: AuditHash,
    pub(super) sequence: u64,
    pub(super) began_ms: u64,
    pub(super) dropped: u64,
}

/// A record with the hash that it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) sequence: u64,
    pub(super) id: String,
    pub(super) time_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_ms: Option<u64>,
    user: String,
    tenant: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    pub(super) method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    source_ip: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_code: Option<i32>,
    part: AuditPhase,
    /// The rule of a site policy that decided the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// How many calls or dropped records it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

impl Anchor {
    pub(super) fn read(anchor: &AuditAnchor) -> Result<Self> {
        Ok(Self {
            hash: AuditHash::try_from(anchor.hash.as_slice())?,
            sequence: anchor.sequence,
            began_ms: anchor.began_ms,
            dropped: anchor.dropped,
        })
    }
}

impl Line {
    pub(super) fn read(record: AuditRecord) -> Result<Self> {
        let part = match record.part() {
            AuditPart::Request => AuditPhase::Request,
            AuditPart::Response => AuditPhase::Response,
            AuditPart::Call => AuditPhase::Call,
            AuditPart::Dropped => AuditPhase::Dropped,
            AuditPart::Unspecified => bail!(
                "record {} is of a kind that this program does not know; update it",
                record.sequence
            ),
        };
        let hash = (!record.hash.is_empty()).then(|| AuditHash::try_from(record.hash.as_slice()));
        Ok(Self {
            sequence: record.sequence,
            id: record.id,
            time_ms: record.time_ms,
            ended_ms: record.ended_ms,
            user: record.user,
            tenant: record.tenant,
            project: record.project,
            method: record.method,
            body: record.body,
            source_ip: record.source_ip,
            result_code: record.result_code,
            part,
            rule: record.rule,
            count: record.count,
            hash: hash.transpose()?.map(|hash| hash.to_string()),
        })
    }

    fn line(&self) -> AuditLine<'_> {
        AuditLine {
            sequence: self.sequence,
            id: &self.id,
            time: Timestamp::from_ms(self.time_ms),
            ended: self.ended_ms.map(Timestamp::from_ms),
            user: &self.user,
            tenant: &self.tenant,
            project: self.project.as_deref(),
            method: &self.method,
            body: self.body.as_deref(),
            source_ip: &self.source_ip,
            result_code: self.result_code,
            phase: self.part,
            rule: self.rule.as_deref(),
            count: self.count,
        }
    }
}

/// The gaps of a walk, and what the trail itself says of them.
#[derive(Debug, Default)]
struct Gaps {
    seen: AuditGaps,
    /// Records that were dropped there.
    dropped: u64,
    /// What the newest record of retention says, and what had been seen by then.
    told: Option<(String, String)>,
}

impl Gaps {
    fn add(&mut self, line: &Line, hash: &AuditHash) {
        let count = line.count.unwrap_or(1);
        self.seen.add(line.sequence, count, hash);
        self.dropped += u64::from(count);
    }

    /// Retention left the gaps that there are, and nobody else.
    fn check(&self) -> Result<()> {
        let seen = self.seen.told();
        let is_told = match &self.told {
            None => self.seen.is_empty(),
            Some((told, by_then)) => *told == *by_then && *by_then == seen,
        };
        ensure!(
            is_told,
            "records are missing from the middle, and no record of retention tells of these gaps: \
             they were removed"
        );
        Ok(())
    }
}

/// A walk along the chain.
#[derive(Debug)]
pub(super) struct Walk {
    anchor: Option<Anchor>,
    /// Hash of the last record that fits.
    head: Option<AuditHash>,
    /// The last record that was looked at.
    pub(super) sequence: u64,
    /// A hash that must be on the way.
    wanted: Option<AuditHash>,
    pub(super) checked: u64,
    pub(super) older: u64,
    gaps: Gaps,
}

impl Walk {
    /// A walk from the anchor that must come by `wanted`, a hash of an earlier export.
    pub(super) fn new(anchor: Option<Anchor>, wanted: Option<AuditHash>) -> Self {
        let head = anchor.as_ref().map(|anchor| anchor.hash);
        Self {
            wanted: wanted.filter(|wanted| Some(*wanted) != head),
            head,
            anchor,
            sequence: 0,
            checked: 0,
            older: 0,
            gaps: Gaps::default(),
        }
    }

    /// Goes to the next record.
    ///
    /// # Errors
    /// When it does not fit.
    pub(super) fn step(&mut self, line: &Line) -> Result<()> {
        let named = || {
            format!(
                "record {} (call {}, {}) does not fit",
                line.sequence, line.id, line.method
            )
        };
        self.fit(line).with_context(named)?;
        self.sequence = line.sequence;
        Ok(())
    }

    fn fit(&mut self, line: &Line) -> Result<()> {
        let last = self.sequence;
        ensure!(
            line.sequence > last || last == 0,
            "it is out of order: the record before it is {last}"
        );
        let anchor = self.anchor.as_ref().map(|anchor| anchor.sequence);
        let is_chained = anchor.is_some_and(|anchor| line.sequence > anchor);
        let stated = line.hash.as_deref().map(str::parse::<AuditHash>);
        let (stated, previous) = match (stated, self.head) {
            (Some(stated), Some(head)) if is_chained => (stated?, head),
            (None, _) if !is_chained => {
                self.older += 1;
                return Ok(());
            }
            (None, _) => bail!("it has no hash, but the chain begins before it"),
            (Some(_), _) => bail!("it has a hash, but the chain begins behind it"),
        };
        if line.part == AuditPhase::Dropped {
            self.gaps.add(line, &stated);
            self.wanted = self.wanted.filter(|wanted| *wanted != stated);
            self.head = Some(stated);
            return Ok(());
        }
        let computed = line.line().hash(&previous);
        ensure!(
            stated == computed,
            "its hash is {stated}; from what it says, and the record before it, comes {computed}: \
             it was changed, or a record before it was removed or inserted"
        );
        if self.wanted == Some(computed) {
            self.wanted = None;
        }
        self.head = Some(computed);
        self.checked += 1;
        if line.method == RETENTION_METHOD {
            let told = line.body.clone().unwrap_or_default();
            self.gaps.told = Some((told, self.gaps.seen.told()));
        }
        Ok(())
    }

    /// Ends the walk: what to tell, and the hash to remember.
    ///
    /// # Errors
    /// When the wanted hash was not on the way.
    pub(super) fn end(self) -> Result<Verdict> {
        self.gaps.check()?;
        if let Some(wanted) = self.wanted {
            bail!(
                "no record has the hash {wanted}: the records up to it were dropped by now, or \
                 the trail is another one"
            );
        }
        Ok(Verdict {
            records: self.checked,
            before_chain: self.older,
            dropped: self.anchor.as_ref().map_or(0, |anchor| anchor.dropped) + self.gaps.dropped,
            anchor: self.anchor.map(|anchor| anchor.hash.to_string()),
            head: self.head.map(|hash| hash.to_string()),
        })
    }
}

/// What came of a walk that found nothing wrong.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    /// Records that fit.
    records: u64,
    /// Records from before the chain, which nothing proves.
    before_chain: u64,
    /// Records of the chain that were dropped: as the oldest, or beyond their caller's share.
    dropped: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    anchor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
}

impl Verdict {
    /// For people.
    pub(super) fn say(&self) {
        let dash = |hash: &Option<String>| hash.clone().unwrap_or_else(|| "-".to_owned());
        outln!("{} records fit together", self.records);
        if self.before_chain > 0 {
            outln!("{} are from before the chain", self.before_chain);
        }
        outln!("dropped  {}", self.dropped);
        outln!("anchor   {}", dash(&self.anchor));
        outln!("head     {}", dash(&self.head));
    }
}

mod as_text {
    use proto_types::AuditHash;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(hash: &AuditHash, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(hash)
    }
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<AuditHash, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(count: u64) -> (Anchor, Vec<Line>) {
        let anchor = Anchor {
            hash: AuditHash::anchor(2, Timestamp::from_ms(9)),
            sequence: 2,
            began_ms: 9,
            dropped: 0,
        };
        let mut previous = anchor.hash;
        let mut lines = Vec::new();
        for sequence in 1..=count {
            let mut line = Line {
                sequence,
                id: format!("call-{sequence}"),
                time_ms: sequence,
                ended_ms: Some(sequence),
                user: "ada".into(),
                tenant: String::new(),
                project: None,
                method: "/a/B".into(),
                body: Some("{}".into()),
                source_ip: "::1".into(),
                result_code: Some(0),
                part: AuditPhase::Call,
                rule: None,
                count: None,
                hash: None,
            };
            if sequence > anchor.sequence {
                previous = line.line().hash(&previous);
                line.hash = Some(previous.to_string());
            }
            lines.push(line);
        }
        (anchor, lines)
    }

    fn walk(anchor: &Anchor, lines: &[Line], wanted: Option<AuditHash>) -> Result<Verdict> {
        let mut walk = Walk::new(Some(anchor.clone()), wanted);
        for line in lines {
            walk.step(line)?;
        }
        walk.end()
    }

    #[test]
    fn a_whole_chain_fits() {
        let (anchor, lines) = chain(6);
        let verdict = walk(&anchor, &lines, None).unwrap();
        assert_eq!((verdict.records, verdict.before_chain), (4, 2));
        assert_eq!(verdict.head, lines[5].hash);
        // What was dropped has moved the anchor.
        let moved = Anchor {
            hash: lines[3].hash.as_deref().unwrap().parse().unwrap(),
            sequence: 4,
            ..anchor.clone()
        };
        assert_eq!(walk(&moved, &lines[4..], None).unwrap().records, 2);
        let early = lines[2].hash.as_deref().unwrap().parse().unwrap();
        walk(&anchor, &lines, Some(early)).unwrap();
        let gone = walk(&moved, &lines[4..], Some(early)).unwrap_err();
        assert!(
            gone.to_string().contains("no record has the hash"),
            "{gone}"
        );
    }

    #[test]
    fn a_gap_that_no_record_tells_of_was_made_by_somebody() {
        let (anchor, mut lines) = chain(8);
        let hash: AuditHash = lines[4].hash.as_deref().unwrap().parse().unwrap();
        // Records 4 and 5 are gone, and record 8 tells so.
        let mut gaps = AuditGaps::default();
        gaps.add(5, 2, &hash);
        lines[7].method = RETENTION_METHOD.into();
        lines[7].body = Some(gaps.told());
        let previous = lines[6].hash.as_deref().unwrap().parse().unwrap();
        lines[7].hash = Some(lines[7].line().hash(&previous).to_string());
        let untold: Vec<Line> = lines.drain(3..4).collect();
        assert_eq!(untold[0].sequence, 4);
        lines[3].part = AuditPhase::Dropped;
        lines[3].count = Some(2);
        let verdict = walk(&anchor, &lines, None).unwrap();
        assert_eq!((verdict.records, verdict.dropped), (4, 2));
        // Somebody drops one more.
        let mut more = lines.clone();
        more[4].part = AuditPhase::Dropped;
        let found = walk(&anchor, &more, None).unwrap_err().to_string();
        assert!(found.contains("they were removed"), "{found}");
        // Or takes the record away that tells.
        let found = walk(&anchor, &lines[..6], None).unwrap_err().to_string();
        assert!(found.contains("they were removed"), "{found}");
    }

    #[test]
    fn the_first_that_does_not_fit_is_named() {
        type Harm = fn(&mut Vec<Line>);
        let harms: [(&str, Harm); 6] = [
            ("record 4", |lines| lines[3].user = "eve".into()),
            ("record 5", |lines| drop(lines.remove(3))),
            ("record 4", |lines| lines[3].hash = None),
            ("record 4", |lines| lines[3].hash = lines[4].hash.clone()),
            ("record 5", |lines| lines.swap(3, 4)),
            ("record 2", |lines| lines[1].hash = lines[4].hash.clone()),
        ];
        for (named, harm) in harms {
            let (anchor, mut lines) = chain(6);
            harm(&mut lines);
            let found = walk(&anchor, &lines, None).unwrap_err().to_string();
            assert!(found.contains(named), "{named}: {found}");
        }
    }

    #[test]
    fn lines_read_back() {
        let (anchor, lines) = chain(3);
        for line in &lines {
            let text = serde_json::to_string(line).unwrap();
            assert_eq!(&serde_json::from_str::<Line>(&text).unwrap(), line);
        }
        let text = serde_json::to_string(&anchor).unwrap();
        assert_eq!(serde_json::from_str::<Anchor>(&text).unwrap(), anchor);
    }
}
