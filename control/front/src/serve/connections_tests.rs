//! Connections that make room for others, and those that stay.

use std::time::Duration;

use tokio::time::Instant;

use super::*;

const LIMITS: ConnectionLimits = ConnectionLimits {
    all: 12,
    strangers: 6,
    strangers_of_one_network: 4,
    of_one_token: 3,
    first_byte: Duration::from_secs(1),
    first_request: Duration::from_secs(1),
    stranger_idle: Duration::from_secs(5),
};

fn is_ended(open: &OpenConnection) -> bool {
    open.0.ended.is_cancelled()
}

fn from(all: &Arc<Connections>, address: &str) -> OpenConnection {
    all.open(address.parse().unwrap()).unwrap()
}

fn of_token(all: &Arc<Connections>, address: &str, token: &str) -> OpenConnection {
    let open = from(all, address);
    open.connection().belongs_to(&token.into());
    open
}

fn count(all: &Arc<Connections>) -> (usize, usize) {
    let open = lock(&all.open);
    (open.all, open.strangers)
}

#[test]
fn a_network_loses_its_own_oldest_that_does_nothing() {
    let all = Connections::new(LIMITS);
    let mut open = Vec::new();
    // One host has all addresses of its network.
    for number in 0..4 {
        open.push(from(&all, &format!("2001:db8::{number}")));
    }
    let call = open[0].connection().call();
    open.push(from(&all, "2001:db8::5"));
    assert!(!is_ended(&open[0]) && is_ended(&open[1]) && !is_ended(&open[4]));
    let calls: Vec<_> = open.iter().map(|open| open.connection().call()).collect();
    open.push(from(&all, "2001:db8::6"));
    assert!(is_ended(&open[0]), "all are busy: the oldest goes");
    drop((call, calls, open));
    assert_eq!(count(&all), (0, 0));
    assert!(lock(&all.open).of.is_empty());
}

#[test]
fn the_network_with_the_most_loses_first() {
    let all = Connections::new(LIMITS);
    let one = from(&all, "192.0.2.1");
    let other = from(&all, "192.0.2.2");
    let many: Vec<_> = (0..4).map(|_| from(&all, "192.0.2.3")).collect();
    let newest = from(&all, "192.0.2.4");
    assert!(is_ended(&many[0]) && !is_ended(&one) && !is_ended(&other) && !is_ended(&newest));
    assert_eq!(count(&all), (6, 6));
}

#[test]
fn strangers_take_nothing_from_tokens() {
    let all = Connections::new(LIMITS);
    let own: Vec<_> = (0..3)
        .map(|_| of_token(&all, "192.0.2.1", "acme"))
        .collect();
    let flood: Vec<_> = (0..50).map(|_| from(&all, "192.0.2.1")).collect();
    assert!(own.iter().all(|open| !is_ended(open)));
    assert_eq!(flood.iter().filter(|open| !is_ended(open)).count(), 4);
    assert_eq!(count(&all), (7, 4));
}

#[test]
fn a_token_loses_its_own_idle_one_and_a_running_call_never_ends() {
    let all = Connections::new(LIMITS);
    let own: Vec<_> = (0..3)
        .map(|_| of_token(&all, "192.0.2.1", "acme"))
        .collect();
    let call = own[0].connection().call();
    let fourth = of_token(&all, "192.0.2.1", "acme");
    assert!(!is_ended(&own[0]) && is_ended(&own[1]));
    let calls = [own[2].connection().call(), fourth.connection().call()];
    let fifth = of_token(&all, "192.0.2.1", "acme");
    assert_eq!(count(&all), (4, 1), "it stays among the strangers");
    // A connection of one token stays there, whoever calls on it.
    own[0].connection().belongs_to(&"other".into());
    assert_eq!(lock(&all.open).of.len(), 2);
    drop((call, calls, fifth));
}

#[test]
fn when_all_places_are_taken_idle_ones_go_and_busy_ones_stay() {
    let all = Connections::new(LIMITS);
    let mut open = Vec::new();
    let mut calls = Vec::new();
    for number in 0..12 {
        let one = of_token(&all, "192.0.2.1", &format!("t{}", number / 3));
        if number != 4 {
            calls.push(one.connection().call());
        }
        open.push(one);
    }
    assert_eq!(count(&all), (12, 0));
    open.push(from(&all, "192.0.2.2"));
    assert!(is_ended(&open[4]));
    open.push(from(&all, "192.0.2.2"));
    assert!(is_ended(&open[12]), "strangers before tokens");
    calls.push(open[13].connection().call());
    open[13].connection().belongs_to(&"t9".into());
    assert!(all.open("192.0.2.3".parse().unwrap()).is_none());
    let busy = open.iter().filter(|open| !is_ended(open)).count();
    assert_eq!(busy, 12);
}

#[tokio::test(start_paused = true)]
async fn strangers_have_deadlines_and_tokens_have_none() {
    let all = Connections::new(LIMITS);
    let began = Instant::now();
    let silent = from(&all, "192.0.2.1");
    silent.over().await;
    assert_eq!(began.elapsed(), Duration::from_secs(3));
    let idle = from(&all, "192.0.2.1");
    let began = Instant::now();
    let call = idle.connection().call();
    let long = tokio::time::timeout(Duration::from_secs(60), idle.over()).await;
    assert!(long.is_err(), "a call runs");
    drop(call);
    let ended = Instant::now();
    idle.over().await;
    assert!(ended.elapsed() >= LIMITS.stranger_idle && began.elapsed().as_secs() < 70);
    let known = of_token(&all, "192.0.2.1", "acme");
    let waited = tokio::time::timeout(Duration::from_secs(9999), known.over()).await;
    assert!(waited.is_err());
}
