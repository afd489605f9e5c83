use super::*;

#[tokio::test]
async fn an_order_of_an_earlier_binding_ends_without_being_started() {
    let dir = tempfile::tempdir().unwrap();
    let of = |id: &str, epoch| Order {
        binding: Some(Binding { era: 1, epoch }),
        ..order(id, 1, Action::PowerReset)
    };
    let (taken, script) = crew(Script::default(), dir.path());
    // In whatever sequence they are listed: the highest counts from the beginning.
    let told = reasons(taken, vec![of("late", 1), of("now", 2)]).await;
    assert!(told[0].starts_with("not carried out: "), "{told:?}");
    assert_eq!(told[1], "");
    assert_eq!(script.acts.lock().unwrap().len(), 1);
    // A restart, and another order of before.
    let (again, script) = crew(Script::default(), dir.path());
    let told = reasons(again, vec![of("later", 1)]).await;
    assert!(told[0].contains("of binding 1, and this agent"), "{told:?}");
    assert!(script.acts.lock().unwrap().is_empty());
}
