use crate::namespace::is_root;
use crate::site::{INSIDE, INSIDE6, OUTSIDE, OUTSIDE6, Site, arrives, udp};

const DNS: &str = "
    cwnp:
      egress:
      - {name: dns, to: [{cidr: 203.0.113.0/24}, {cidr: 'fd00:b::/64'}], ports: [{protocol: UDP, port: 53}]}
";

#[test]
fn a_rule_lets_its_packets_pass_and_no_others() {
    if !is_root() {
        return;
    }
    let site = Site::new("rule");
    let (client, client6) = (udp(&site.inside, INSIDE, 0), udp(&site.inside, INSIDE6, 0));
    let dns = udp(&site.outside, OUTSIDE, 53);
    let dns6 = udp(&site.outside, OUTSIDE6, 53);
    let other = udp(&site.outside, OUTSIDE, 54);
    assert!(!site.apply(DNS).is_empty());
    println!("{}", site.router.output("nft list ruleset"));
    assert_eq!(site.apply(DNS), Vec::new(), "twice is once");
    assert!(arrives(&client, &dns));
    assert!(arrives(&client6, &dns6));
    assert!(!arrives(&client, &other));
    assert_eq!(site.counted("cwnp/egress/dns/0").packets, 2);
    assert_eq!(site.counted("dropped").packets, 1);
    let new_client = udp(&site.outside, OUTSIDE, 1000);
    assert!(!arrives(&new_client, &client), "nothing comes in");
}
