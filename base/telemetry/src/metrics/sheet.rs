//! The sheet that a collector writes at a scrape.

use std::borrow::Cow;
use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// A label: its name, and a value of a bounded set.
pub type Label = (&'static str, Cow<'static, str>);

/// A histogram that was counted elsewhere: how many were at most so large, each alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buckets {
    /// Upper bound, and how many there are between the bound before and it. The last bound is
    /// infinite.
    pub counts: Vec<(f64, u64)>,
    /// Sum of all values.
    pub sum: f64,
}

/// Where a collector writes. Names are without `_total` and without their unit, which are added.
#[derive(Debug)]
pub struct Sheet<'a>(DescriptorEncoder<'a>);

impl<'a> Sheet<'a> {
    /// Writes where `encoder` does.
    pub fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    /// One value that goes up and down.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn gauge(&mut self, name: &str, help: &str, unit: Option<Unit>, value: f64) -> fmt::Result {
        self.gauges(name, help, unit, [(Vec::new(), value)])
    }

    /// Values that go up and down, by labels.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn gauges(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (Vec<Label>, f64)>,
    ) -> fmt::Result {
        let mut metric = self.head(name, help, unit.as_ref(), MetricType::Gauge)?;
        for (labels, value) in values {
            labelled(&mut metric, &labels, |encoder| encoder.encode_gauge(&value))?;
        }
        Ok(())
    }

    /// Writes a constant: the value is 1, and the labels carry the information.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn info(&mut self, name: &str, help: &str, labels: &[Label]) -> fmt::Result {
        let labels: Vec<(&str, &str)> = labels
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        self.head(name, help, None, MetricType::Info)?
            .encode_info(&labels)
    }

    /// One value that only grows.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn counter(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        value: u64,
    ) -> fmt::Result {
        self.counters(name, help, unit, [(Vec::new(), value)])
    }

    /// Values that only grow, by labels.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn counters(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (Vec<Label>, u64)>,
    ) -> fmt::Result {
        let mut metric = self.head(name, help, unit.as_ref(), MetricType::Counter)?;
        for (labels, value) in values {
            labelled(&mut metric, &labels, |encoder| {
                encoder.encode_counter::<NoLabelSet, _, u64>(&value, None)
            })?;
        }
        Ok(())
    }

    /// One value that only grows and is no whole number.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn counter_f64(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        value: f64,
    ) -> fmt::Result {
        self.head(name, help, unit.as_ref(), MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    /// A histogram.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn histogram(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        buckets: &Buckets,
    ) -> fmt::Result {
        let count = buckets.counts.iter().map(|(_, count)| count).sum();
        let mut bounded = buckets.counts.clone();
        if let Some(last) = bounded.last_mut() {
            last.0 = f64::INFINITY;
        }
        self.head(name, help, unit.as_ref(), MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(buckets.sum, count, &bounded, None)
    }

    fn head<'s>(
        &'s mut self,
        name: &'s str,
        help: &'s str,
        unit: Option<&'s Unit>,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, unit, kind)
    }
}

fn labelled(
    metric: &mut MetricEncoder<'_>,
    labels: &[Label],
    write: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    if labels.is_empty() {
        return write(metric);
    }
    let labels: Vec<(&str, &str)> = labels
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect();
    write(&mut metric.encode_family(&labels)?)
}
