//! Verification of the hash chain of the audit trail.

use anyhow::{Context as _, Result, bail, ensure};
use proto_types::{AuditGaps, AuditHash, AuditPhase, RETENTION_METHOD};
use serde::Serialize;

use super::trail_line::{ChainAnchor, TrailLine};

/// The gaps that a walk found, and the gaps that the trail's records of retention list.
#[derive(Debug, Default)]
struct ChainGaps {
    seen: AuditGaps,
    /// Number of records that were dropped in the gaps.
    dropped: u64,
    /// The gaps in the newest record of retention, and the gaps found up to it.
    told: Option<(String, String)>,
}

impl ChainGaps {
    fn add(&mut self, line: &TrailLine, hash: &AuditHash) {
        let count = line.count.unwrap_or(1);
        self.seen.add(line.sequence, count, hash);
        self.dropped += u64::from(count);
    }

    /// Checks that the newest record of retention lists exactly the gaps that were found.
    ///
    /// # Errors
    /// Records were removed by somebody else.
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

/// A walk along the chain, record by record.
#[derive(Debug)]
pub(super) struct ChainWalk {
    anchor: Option<ChainAnchor>,
    /// Hash of the last record of the chain.
    head: Option<AuditHash>,
    /// Sequence number of the last record.
    pub(super) sequence: u64,
    /// Hash that a record must have. `None` means it was found, or none was asked for.
    wanted: Option<AuditHash>,
    pub(super) checked: u64,
    pub(super) older: u64,
    gaps: ChainGaps,
}

impl ChainWalk {
    /// Starts a walk at the anchor. `wanted` is the head of an earlier export, which a record must
    /// have.
    pub(super) fn new(anchor: Option<ChainAnchor>, wanted: Option<AuditHash>) -> Self {
        let head = anchor.as_ref().map(|anchor| anchor.hash);
        Self {
            wanted: wanted.filter(|wanted| Some(*wanted) != head),
            head,
            anchor,
            sequence: 0,
            checked: 0,
            older: 0,
            gaps: ChainGaps::default(),
        }
    }

    /// Verifies the next record.
    ///
    /// # Errors
    /// The record is out of order, or its hash does not match.
    pub(super) fn step(&mut self, line: &TrailLine) -> Result<()> {
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

    fn fit(&mut self, line: &TrailLine) -> Result<()> {
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
        // A gap has the hash of the last record in it. The hash cannot be computed, as the records
        // are gone; `check` compares all gaps with the record of retention, which is hashed.
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

    /// Ends the walk.
    ///
    /// # Errors
    /// Records are missing, or no record has the wanted hash.
    pub(super) fn end(self) -> Result<ChainVerdict> {
        self.gaps.check()?;
        if let Some(wanted) = self.wanted {
            bail!(
                "no record has the hash {wanted}: the records up to it were dropped since, or it \
                 is of another trail"
            );
        }
        Ok(ChainVerdict {
            records: self.checked,
            before_chain: self.older,
            dropped: self.anchor.as_ref().map_or(0, |anchor| anchor.dropped) + self.gaps.dropped,
            anchor: self.anchor.map(|anchor| anchor.hash.to_string()),
            head: self.head.map(|hash| hash.to_string()),
        })
    }
}

/// The result of a walk without errors.
#[derive(Debug, Serialize)]
pub(super) struct ChainVerdict {
    /// Records whose hashes match.
    records: u64,
    /// Records from before the chain, which have no hash.
    before_chain: u64,
    /// Records of the chain that retention dropped: the oldest, or those beyond their caller's share.
    dropped: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    anchor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
}

impl ChainVerdict {
    /// Prints the result for people.
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

#[cfg(test)]
mod tests {
    use proto_types::Timestamp;

    use super::*;

    fn chain(count: u64) -> (ChainAnchor, Vec<TrailLine>) {
        let anchor = ChainAnchor {
            hash: AuditHash::anchor(2, Timestamp::from_ms(9)),
            sequence: 2,
            began_ms: 9,
            dropped: 0,
        };
        let mut previous = anchor.hash;
        let mut lines = Vec::new();
        for sequence in 1..=count {
            let mut line = TrailLine {
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

    fn walk(
        anchor: &ChainAnchor,
        lines: &[TrailLine],
        wanted: Option<AuditHash>,
    ) -> Result<ChainVerdict> {
        let mut walk = ChainWalk::new(Some(anchor.clone()), wanted);
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
        let moved = ChainAnchor {
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
        let untold: Vec<TrailLine> = lines.drain(3..4).collect();
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
        type Harm = fn(&mut Vec<TrailLine>);
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
            assert_eq!(&serde_json::from_str::<TrailLine>(&text).unwrap(), line);
        }
        let text = serde_json::to_string(&anchor).unwrap();
        assert_eq!(serde_json::from_str::<ChainAnchor>(&text).unwrap(), anchor);
    }
}
