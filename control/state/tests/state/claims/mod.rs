//! Pools and claims: the checklist of the design, as tables and stories.

mod binding;
mod conditions;
mod fairness;
mod forgery;
mod hints;
mod life;
mod limits;
mod metadata;
mod nodes;
mod policies;
mod power;
mod properties;
mod queue;
mod reach;
mod release;
mod reuse;
mod scale;
mod site;
mod stories;
mod tenure;
mod wakes;
