//! Writes the metrics of a collector at a scrape.

use std::borrow::Cow;
use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// A label: its name, and a value from a bounded set.
pub type Label = (&'static str, Cow<'static, str>);

/// The counts of a histogram that its owner keeps. Each bucket counts only its own values; the
/// cumulative sums of the text format are computed when it is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buckets {
    /// Upper bound of each bucket, and the number of values above the bound before. The last bound
    /// is written as infinity.
    pub counts: Vec<(f64, u64)>,
    /// Sum of all values.
    pub sum: f64,
}

/// Encodes metrics. Names are given without `_total` and without their unit; both are appended.
#[derive(Debug)]
pub struct Sheet<'a>(DescriptorEncoder<'a>);

impl<'a> Sheet<'a> {
    /// Writes to `encoder`.
    pub fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    /// Writes a gauge: a value that goes up and down.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn gauge(&mut self, name: &str, help: &str, unit: Option<Unit>, value: f64) -> fmt::Result {
        self.gauges(name, help, unit, [(Vec::new(), value)])
    }

    /// Writes a gauge with labels.
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

    /// Writes a counter: a value that only grows.
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

    /// Writes a counter with labels.
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

    /// Writes a counter that is not a whole number.
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

    /// Writes a histogram.
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
