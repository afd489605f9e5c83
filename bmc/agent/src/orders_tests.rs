use std::sync::Mutex;
use std::time::Duration;

use agents_kit::StateDir;
use futures::future::BoxFuture;

use super::*;
use crate::config::{Interface, Speech};
use crate::driver::Reading;
use crate::nonce::Nonce;

#[path = "orders_bindings_tests.rs"]
mod bindings;

/// A driver that answers from a list, and can be told to wait.
#[derive(Default)]
struct Script {
    answers: Mutex<Vec<Result<Power, DriveError>>>,
    acts: Mutex<Vec<(String, Action)>>,
    hang: bool,
    panics: bool,
}

impl Driver for Script {
    fn read<'a>(&'a self, _: &'a Target) -> BoxFuture<'a, Result<Reading, DriveError>> {
        Box::pin(async { Err(DriveError::Unreached("not asked".into())) })
    }

    fn act<'a>(
        &'a self,
        target: &'a Target,
        action: Action,
        _: Instant,
    ) -> BoxFuture<'a, Result<Power, DriveError>> {
        Box::pin(async move {
            self.acts
                .lock()
                .unwrap()
                .push((target.address.to_string(), action));
            assert!(!self.panics, "a mistake of a driver");
            if self.hang {
                std::future::pending::<()>().await;
            }
            self.answers.lock().unwrap().pop().unwrap_or(Ok(Power::On))
        })
    }
}

fn machine(n: u8) -> MachineId {
    format!("6f1c0001-0000-4000-8000-0000000000{n:02x}")
        .parse()
        .unwrap()
}

fn order(id: &str, n: u8, action: Action) -> Order {
    Order {
        id: id.into(),
        machine: machine(n),
        action,
        bmc: None,
        deadline: Instant::now() + Duration::from_secs(30),
        trace: None,
        binding: None,
    }
}

fn crew(driver: Script, dir: &std::path::Path) -> (Crew, Arc<Script>) {
    let speech = Speech {
        interface: Interface::Ipmi,
        redfish_port: 443,
        ipmi_port: 623,
        trust: None,
        efi: false,
    };
    let target = |n: u8| Target {
        address: [10, 0, 0, n].into(),
        speech: speech.clone(),
        machine: Some(machine(n)),
    };
    let fleet = Arc::new(Fleet::new((1..=20).map(target).collect(), speech.clone()));
    let driver = Arc::new(driver);
    let state = StateDir::open(&dir.join("state")).unwrap();
    let journal = Journal::open(state.clone()).unwrap();
    (
        Crew {
            fleet,
            driver: Arc::clone(&driver) as Arc<dyn Driver>,
            journal,
            bindings: Bindings::open(state).unwrap(),
            steps: agents_kit::Steps::default(),
            spans: Spans::default(),
        },
        driver,
    )
}

/// Of an order that control does not withdraw.
fn lasting() -> CancellationToken {
    CancellationToken::new()
}

#[test]
fn running_orders_that_control_lists_no_more_are_withdrawn() {
    let list = [1_u8, 2].map(|n| order(&n.to_string(), n, Action::PowerOn));
    let mut book = Book::default();
    book.take(list.to_vec());
    while book.next(|_| false).is_some() {}
    book.take(list[1..].to_vec());
    let withdrawn = [1, 2].map(|n| book.withdrawal(machine(n)).is_cancelled());
    assert_eq!(withdrawn, [true, false]);
}

#[tokio::test(start_paused = true)]
async fn an_order_that_control_withdraws_is_not_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let (crew, script) = crew(Script::default(), dir.path());
    let silent = || Err(DriveError::Unreached("silent".into()));
    *script.answers.lock().unwrap() = std::iter::repeat_with(silent).take(1000).collect();
    let (order, withdrawn) = (order("x", 1, Action::PowerOn), lasting());
    let withdraw = async {
        sleep(Duration::from_secs(2)).await;
        withdrawn.cancel();
    };
    let began = Instant::now();
    let (end, ()) = tokio::join!(carry_out(&crew, &order, &withdrawn), withdraw);
    assert_eq!(
        (end.error.as_str(), began.elapsed().as_secs()),
        (WITHDRAWN, 2)
    );
    let acts = script.acts.lock().unwrap().len();
    assert!(acts > 0);
    let end = carry_out(&crew, &order, &withdrawn).await;
    assert_eq!(end.error, WITHDRAWN);
    assert_eq!(script.acts.lock().unwrap().len(), acts, "nor begun");
}

#[test]
fn orders_of_a_machine_go_in_sequence_and_others_beside_them() {
    let wanted = vec![
        order("1a", 1, Action::BootPxe),
        order("1b", 1, Action::PowerOn),
        order("2a", 2, Action::PowerOn),
    ];
    let mut book = Book {
        wanted,
        ..Book::default()
    };
    let next = |book: &mut Book| book.next(|_| false).map(|o| o.id);
    assert_eq!(next(&mut book).as_deref(), Some("1a"));
    assert_eq!(next(&mut book).as_deref(), Some("2a"));
    assert_eq!(next(&mut book), None);
    book.running.remove(&machine(1));
    assert_eq!(book.next(|id| id == "1b"), None, "it was done before");
    assert_eq!(next(&mut book).as_deref(), Some("1b"));
}

#[test]
fn no_more_than_the_bound_runs_at_once() {
    let wanted = (0..=u8::MAX)
        .map(|n| order(&n.to_string(), n, Action::PowerOn))
        .collect();
    let mut book = Book {
        wanted,
        ..Book::default()
    };
    let begun = std::iter::from_fn(|| book.next(|_| false)).count();
    assert_eq!(begun, RUNNING_MAX);
}

#[test]
fn deadlines() {
    let now = Instant::now();
    let time = |secs: u64| time_to_act(now + Duration::from_secs(secs), now);
    assert_eq!(time(60), Some(Duration::from_secs(55)));
    assert_eq!(time(5), None, "no time to tell the end");
    assert_eq!(time(0), None);
    assert_eq!(time_to_act(now, now + Duration::from_secs(1)), None);
    assert_eq!(time(100_000), Some(ORDER_TIME_MAX));
}

/// The round goes on over BMCs that hang.
#[tokio::test(start_paused = true)]
async fn a_machine_is_found_in_the_middle_of_a_round() {
    let speech = Speech {
        interface: Interface::Ipmi,
        redfish_port: 443,
        ipmi_port: 623,
        trust: None,
        efi: false,
    };
    let address = std::net::IpAddr::from([10, 0, 0, 1]);
    let target = Target {
        address,
        speech: speech.clone(),
        machine: None,
    };
    let fleet = Fleet::new(vec![target], speech);
    let until = Instant::now() + Duration::from_secs(60);
    let read = async {
        fleet.look.notified().await;
        let reading = Reading {
            machines: vec![machine(1)],
            ..Reading::default()
        };
        fleet.record(address, Ok(reading));
    };
    let (found, ()) = tokio::join!(find(&fleet, machine(1), None, until), read);
    assert_eq!(found.map(|it| it.address), Some(address));
    assert!(Instant::now() < until);
    assert!(find(&fleet, machine(2), None, until).await.is_none());
    assert_eq!(Instant::now(), until, "nobody ended a round");
}

#[tokio::test(start_paused = true)]
async fn failures_are_repeated_only_where_it_is_safe() {
    let dir = tempfile::tempdir().unwrap();
    let lost = || Err(DriveError::Unsure("lost".into()));
    let unreached = || Err(DriveError::Unreached("silent".into()));
    let refused = || Err(DriveError::Refused("no".into()));
    for (action, answers, want, acts) in [
        (
            Action::PowerOn,
            vec![Ok(Power::On), unreached(), lost()],
            "",
            3,
        ),
        (Action::PowerReset, vec![Ok(Power::On), unreached()], "", 2),
        (
            Action::PowerReset,
            vec![lost()],
            "lost; it may have been carried out",
            1,
        ),
        (Action::PowerOn, vec![refused()], "no", 1),
    ] {
        let (crew, script) = crew(Script::default(), dir.path());
        *script.answers.lock().unwrap() = answers;
        let end = carry_out(&crew, &order("x", 1, action), &lasting()).await;
        assert_eq!(end.error, want, "{action:?}");
        assert_eq!(script.acts.lock().unwrap().len(), acts, "{action:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_digest_that_is_told_is_of_the_nonce_that_was_written_last() {
    let dir = tempfile::tempdir().unwrap();
    let (crew, script) = crew(Script::default(), dir.path());
    let lost = Err(DriveError::Unsure("lost".into()));
    *script.answers.lock().unwrap() = vec![Ok(Power::Off), lost];
    let action = Action::SetNonce(Nonce::generate());
    let end = carry_out(&crew, &order("x", 1, action), &lasting()).await;
    assert_eq!((end.error.as_str(), end.power.as_str()), ("", "off"));
    let acts = script.acts.lock().unwrap().clone();
    let Some((_, Action::SetNonce(last))) = acts.last() else {
        panic!("{acts:?}");
    };
    assert_eq!(acts.len(), 2, "it is tried again");
    assert_eq!(end.nonce_sha256, hex::encode(last.sha256()));

    let refused = Err(DriveError::Refused("no asset tag".into()));
    *script.answers.lock().unwrap() = vec![refused];
    let end = carry_out(&crew, &order("y", 1, action), &lasting()).await;
    assert_eq!(
        (end.error.as_str(), end.nonce_sha256.as_str()),
        ("no asset tag", "")
    );
}

#[tokio::test(start_paused = true)]
async fn each_order_ends_by_its_deadline_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let (hanging, _) = crew(
        Script {
            hang: true,
            ..Script::default()
        },
        dir.path(),
    );
    let end = carry_out(&hanging, &order("x", 1, Action::PowerOn), &lasting()).await;
    assert_eq!(end.error, "BMC 10.0.0.1: no answer before the deadline");
    let end = carry_out(&hanging, &order("x", 1, Action::PowerReset), &lasting()).await;
    assert_eq!(
        end.error,
        "BMC 10.0.0.1: no answer before the deadline; it may have been carried out"
    );
    let answers = (0..1000).map(|_| Err(DriveError::Unreached("IPMI at a:623: silent".into())));
    let (silent, script) = crew(Script::default(), dir.path());
    *script.answers.lock().unwrap() = answers.collect();
    let end = carry_out(&silent, &order("x", 1, Action::PowerOn), &lasting()).await;
    assert_eq!(end.error, "IPMI at a:623: silent");
    assert!(script.acts.lock().unwrap().len() < 50, "it backs off");
    let late = Order {
        deadline: Instant::now(),
        ..order("x", 1, Action::PowerOn)
    };
    assert_eq!(
        carry_out(&silent, &late, &lasting()).await.error,
        "expired before it began"
    );
    let unknown = carry_out(&silent, &order("x", 99, Action::PowerOn), &lasting()).await;
    assert!(
        unknown.error.contains("none of the 20 BMCs here"),
        "{}",
        unknown.error
    );
}

#[tokio::test]
async fn an_order_is_carried_out_once_however_often_it_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let (crew, script) = crew(Script::default(), dir.path());
    let journal = Arc::clone(&crew.journal);
    let stop = CancellationToken::new();
    let (wanted, orders) = watch::channel(Vec::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(run_orders(crew, orders, stop.clone()));
    let list = vec![
        order("a", 1, Action::PowerReset),
        order("b", 1, Action::PowerOn),
    ];
    wanted.send_replace(list.clone());
    let end = Instant::now() + Duration::from_secs(20);
    let both_told = || async {
        while let Some((id, _)) = journal.untold() {
            journal.acknowledged(&id).await.unwrap();
        }
    };
    while script.acts.lock().unwrap().len() < 2 || journal.untold().is_some() {
        assert!(Instant::now() < end);
        both_told().await;
        tokio::task::yield_now().await;
    }
    both_told().await;
    wanted.send_replace(list);
    while journal.untold().is_none() {
        assert!(Instant::now() < end, "control is told once more");
        tokio::task::yield_now().await;
    }
    let acts: Vec<Action> = script
        .acts
        .lock()
        .unwrap()
        .iter()
        .map(|(_, a)| *a)
        .collect();
    assert_eq!(acts, [Action::PowerReset, Action::PowerOn]);
    stop.cancel();
    tasks.join_next().await.unwrap().unwrap();
}

/// The reasons with which these orders end.
async fn reasons(crew: Crew, orders: Vec<Order>) -> Vec<String> {
    let (journal, stop) = (Arc::clone(&crew.journal), CancellationToken::new());
    let (wanted, list) = watch::channel(Vec::new());
    wanted.send_replace(orders.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(run_orders(crew, list, stop.clone()));
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut reasons = Vec::new();
    while reasons.len() < orders.len() {
        assert!(Instant::now() < deadline, "only {reasons:?} ended");
        if let Some((id, end)) = journal.untold() {
            reasons.push(end.error);
            drop(journal.acknowledged(&id).await);
        }
        tokio::task::yield_now().await;
    }
    stop.cancel();
    tasks.join_next().await.unwrap().unwrap();
    reasons
}

#[tokio::test]
async fn an_order_whose_task_panics_ends_and_frees_its_machine() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script {
        panics: true,
        ..Script::default()
    };
    let (crew, _) = crew(script, dir.path());
    let orders = vec![
        order("a", 1, Action::PowerReset),
        order("b", 1, Action::PowerOn),
    ];
    for reason in reasons(crew, orders).await {
        assert!(reason.ends_with("it may have been carried out"), "{reason}");
    }
}

#[tokio::test]
async fn an_order_that_the_journal_cannot_take_ends_without_being_started() {
    let dir = tempfile::tempdir().unwrap();
    let (crew, script) = crew(Script::default(), dir.path());
    // A directory in its place: the file cannot be replaced.
    std::fs::create_dir(dir.path().join("state/orders.json")).unwrap();
    let orders = vec![order("a", 1, Action::PowerReset)];
    let reasons = reasons(crew, orders).await;
    assert!(reasons[0].starts_with("not started"), "{reasons:?}");
    assert!(script.acts.lock().unwrap().is_empty());
}
