//! Random configurations: what is rendered is read back, and deltas end where they should.

use agents_nos::frr::{FrrConfig, Observed, diff, parse, render};
use proptest::prelude::*;

use super::fake::Fake;
use super::random::config;

proptest! {
    #[test]
    fn what_is_rendered_is_read_back(config in config()) {
        prop_assert_eq!(config.check(), Ok(()));
        let seen = parse(&render(&config));
        prop_assert_eq!(&seen.config, &config);
        prop_assert!(seen.foreign.is_empty(), "{:?}", seen.foreign);
        prop_assert!(diff(&seen, &config).is_empty());
        prop_assert_eq!(seen, Observed::from(config));
    }

    #[test]
    fn deltas_end_in_the_desired_state(walk in prop::collection::vec(config(), 1..5)) {
        let mut fake = Fake::default();
        for desired in &walk {
            let delta = diff(&fake.observe(), desired);
            fake.apply(&delta);
            let now = fake.observe();
            prop_assert_eq!(&now.config, desired);
            prop_assert!(diff(&now, desired).is_empty());
        }
        fake.apply(&diff(&fake.observe(), &FrrConfig::default()));
        prop_assert_eq!(fake.observe().config, FrrConfig::default());
    }

    #[test]
    fn a_delta_names_only_what_differs(old in config(), new in config()) {
        let observed = Observed::from(old.clone());
        let same: FrrConfig = FrrConfig { prefixes: new.prefixes.clone(), ..old.clone() };
        let lines: usize = diff(&observed, &same).blocks.iter().map(|b| b.lines.len()).sum();
        let differences = old.prefixes.symmetric_difference(&new.prefixes).count();
        prop_assert_eq!(lines, differences);
    }
}
