//! A bare datagram there and back between two threads, to read one call at a time by. It is no
//! bound: most of it is the kernel waking the other thread, and who keeps a processor awake is
//! faster.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::Bench;
use crate::sample::Latencies;

/// Bytes of a small call as a packet, and of its answer.
const CALL_LEN: usize = 160;
const ANSWER_LEN: usize = 60;
/// A datagram that is not back by then was lost.
const LOST: Duration = Duration::from_millis(200);

/// One datagram at a time, for as long as a row takes.
#[expect(clippy::cast_precision_loss, reason = "for people to read")]
pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let time = Duration::from_secs(bench.args.seconds);
    let began = Instant::now();
    let mut took = round_trips(time).await?;
    let time = began.elapsed();
    let per_s = took.len() as f64 / time.as_secs_f64();
    let p99 = took.quantile_us(0.99) / 1e3;
    bench.progress(&format!(
        "Bare   datagrams   {per_s:>9.0}/s  p99 {p99:.3} ms"
    ));
    bench.report.add_datagram("calls_1_per_s", per_s);
    bench.report.add_datagram("calls_1_p99_ms", p99);
    Ok(())
}

/// Bare datagrams there and back, one at a time.
pub(crate) async fn round_trips(time: Duration) -> Result<Latencies> {
    tokio::task::spawn_blocking(move || there_and_back(time)).await?
}

fn there_and_back(time: Duration) -> Result<Latencies> {
    let [near, far] = [bind()?, bind()?];
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    let over = AtomicBool::new(false);
    Ok(std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut packet = [0; CALL_LEN];
            while !over.load(Ordering::Relaxed) {
                // The other side counts what is lost as not done.
                if far.recv(&mut packet).is_ok() {
                    far.send(&packet[..ANSWER_LEN]).ok();
                }
            }
        });
        let mut took = Latencies::default();
        let mut packet = [0; CALL_LEN];
        let began = Instant::now();
        while began.elapsed() < time {
            let asked = Instant::now();
            if near.send(&packet).is_ok() && near.recv(&mut packet).is_ok() {
                took.add(asked.elapsed());
            }
        }
        over.store(true, Ordering::Relaxed);
        took
    }))
}

fn bind() -> Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(LOST))?;
    Ok(socket)
}
