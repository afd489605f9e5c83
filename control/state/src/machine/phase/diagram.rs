//! Diagram of the phase table, for the page on the life of a machine.

use super::table::{PHASES, rows};
use super::transition::{Deadline, DeadlineClock, Transition};
use crate::machine::entity::Phase;

/// The phases of a machine as a Mermaid state diagram: each arrow names its event, its guard in
/// parentheses, its deadline, and behind a slash its effect.
pub fn phase_diagram() -> String {
    let mut lines = vec![
        "stateDiagram-v2".to_owned(),
        format!("    [*] --> {}", id_of(Phase::New)),
    ];
    for phase in PHASES {
        let arrows = rows(phase).iter().map(|row| arrow(phase, row));
        lines.extend(arrows);
    }
    lines.push(String::new());
    lines.join("\n")
}

fn arrow(phase: Phase, row: &Transition) -> String {
    let mut label = row.event.as_str().to_owned();
    if let Some(guard) = row.guard.as_str() {
        label.push_str(&format!(" ({guard})"));
    }
    if let Some(deadline) = row.deadline {
        label.push_str(&format!(" after {}", words_of(deadline)));
    }
    if let Some(effect) = row.effect.as_str() {
        label.push_str(&format!(" / {effect}"));
    }
    format!("    {} --> {}: {label}", id_of(phase), id_of(row.next))
}

/// Mermaid's name of a phase: dashes are not allowed in it.
fn id_of(phase: Phase) -> String {
    let name = match phase {
        Phase::Held(cause) => format!("{phase}-{}", cause.as_str()),
        _ => phase.to_string(),
    };
    name.replace('-', "_")
}

fn words_of(deadline: Deadline) -> String {
    let seconds = deadline.after_ms / 1000;
    let time = match seconds % 60 {
        0 => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    };
    match deadline.clock {
        DeadlineClock::InPhase => time,
        DeadlineClock::Silence => format!("{time} of silence"),
    }
}
