//! The load client: connects the listeners, asks for changes, and prints what it saw as JSON.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::listener::Listeners;
use crate::plan::Era;
use crate::process::{cpu_micros, peak_kib, resident_kib};
use crate::wire::Connection;

/// How many listeners are being connected at once.
const CONNECTING: usize = 32;
/// Changes before anything is measured.
const WARM_UP: usize = 10;
/// Deliveries in lock-step that are measured, and the time after which fewer must do.
const DELIVERIES: usize = 200_000;
const LOCK_STEP: Duration = Duration::from_secs(2);
/// Changes in one burst, changes times listeners in all bursts, the most bursts that make sense,
/// and the silence after which one is over.
const BURST: usize = 20;
const BURST_TOTAL: usize = 100_000;
const BURSTS: usize = 10;
const SILENCE: Duration = Duration::from_millis(300);
/// Nothing in a sound run takes as long as this.
const TOO_LONG: Duration = Duration::from_secs(30);
/// Until the memory of a server is as large as it will be.
const REST: Duration = Duration::from_secs(1);
/// Changes that fill the socket of a client that does not read, at most.
const FILL: usize = 20_000;

/// What one round showed of one server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Resident memory per idle listener.
    pub(crate) kib: f64,
    /// Deliveries per second in lock-step: the next change when everybody has the last.
    pub(crate) rate: f64,
    /// Server CPU per delivery in lock-step, in microseconds.
    pub(crate) cpu: f64,
    /// Delay of a delivery in lock-step, in microseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Until everybody is current after a burst, in milliseconds.
    pub(crate) burst: f64,
    /// Server CPU for a burst per change and listener, in microseconds.
    pub(crate) burst_cpu: f64,
    /// Notices in a burst per change and listener; fewer than one if notices are merged.
    pub(crate) burst_notices: f64,
}

/// What one round showed of our server with some clients not reading.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Stalled {
    /// The readers' 99th percentile, in microseconds, with and without the others.
    pub(crate) with: f64,
    pub(crate) without: f64,
}

/// What idle listeners cost a server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Idle {
    /// Resident memory for each.
    pub(crate) kib: f64,
    /// The time in which all connected, in seconds.
    pub(crate) seconds: f64,
    /// The most resident memory meanwhile, in MiB more than before.
    pub(crate) peak: f64,
    /// After all left, in MiB more than before.
    pub(crate) left: f64,
}

/// Runs one round as ordered: `ADDRESS PID ERA LISTENERS all|stalled|idle`.
pub(crate) fn main(order: &[&str]) -> Result<(), Box<dyn Error>> {
    let [address, pid, era, listeners, kind] = order else {
        return Err("usage: client ADDRESS PID ERA LISTENERS all|stalled|idle".into());
    };
    let load = Load { address: address.parse()?, pid: pid.parse()?, era: era.parse()? };
    let listeners = listeners.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = LocalSet::new().block_on(&runtime, async {
        match *kind {
            "stalled" => Ok(serde_json::to_string(&load.stalled(listeners).await?)?),
            "idle" => Ok(serde_json::to_string(&load.idle(listeners).await?)?),
            _ => Ok::<_, io::Error>(serde_json::to_string(&load.all(listeners).await?)?),
        }
    })?;
    println!("{report}");
    Ok(())
}

struct Load {
    address: SocketAddr,
    pid: u32,
    era: Era,
}

impl Load {
    async fn all(&self, count: usize) -> io::Result<Figures> {
        let mut control = self.control().await?;
        let before = resident_kib(self.pid)?;
        let mut listeners = Listeners::new();
        for stream in self.connect(count).await? {
            listeners.add(stream);
        }
        tokio::time::sleep(REST).await;
        let kib = (resident_kib(self.pid)? - before) / count as f64;
        self.lock_step(&mut control, &listeners, WARM_UP).await?;
        let lock_step = self.lock_step(&mut control, &listeners, DELIVERIES / count).await?;
        let burst = self.bursts(&mut control, &listeners).await?;
        Ok(Figures {
            kib,
            rate: lock_step.rate,
            cpu: lock_step.cpu,
            p50: lock_step.percentile(0.5),
            p99: lock_step.percentile(0.99),
            burst: burst.millis,
            burst_cpu: burst.cpu,
            burst_notices: burst.notices,
        })
    }

    /// Listeners connect, are idle, and leave.
    async fn idle(&self, count: usize) -> io::Result<Idle> {
        let _control = self.control().await?;
        let (before, begun) = (resident_kib(self.pid)?, Instant::now());
        let streams = self.connect(count).await?;
        let seconds = begun.elapsed().as_secs_f64();
        tokio::time::sleep(REST).await;
        let with = resident_kib(self.pid)?;
        let peak = peak_kib(self.pid)?;
        drop(streams);
        tokio::time::sleep(3 * REST).await;
        let left = resident_kib(self.pid)?;
        Ok(Idle {
            kib: (with - before) / count as f64,
            seconds,
            peak: (peak - before) / 1024.0,
            left: (left - before) / 1024.0,
        })
    }

    /// A tenth of the listeners does not read. They fill up first, then the others connect and are
    /// measured, then those that do not read leave and the others are measured again.
    async fn stalled(&self, count: usize) -> io::Result<Stalled> {
        let mut control = self.control().await?;
        let mut narrow = Vec::new();
        for _ in 0..count / 10 {
            let mut connection = Connection::open_narrow(self.address).await?;
            connection.begin(self.era).await?;
            narrow.push(connection.listen(self.era).await?);
        }
        self.fill(&mut control, narrow.len()).await?;
        let mut listeners = Listeners::new();
        for stream in self.connect(count - narrow.len()).await? {
            listeners.add(stream);
        }
        self.lock_step(&mut control, &listeners, WARM_UP).await?;
        let changes = DELIVERIES / count;
        let with = self.lock_step(&mut control, &listeners, changes).await?.percentile(0.99);
        drop(narrow);
        tokio::time::sleep(REST).await;
        self.lock_step(&mut control, &listeners, WARM_UP).await?;
        let without = self.lock_step(&mut control, &listeners, changes).await?.percentile(0.99);
        Ok(Stalled { with, without })
    }

    /// Changes until the server says that a notice waits for each of these listeners.
    async fn fill(&self, control: &mut Connection, stalled: usize) -> io::Result<()> {
        let mut watch = Connection::open(self.address).await?;
        for change in 0..FILL {
            control.send_bump(self.era, 1).await?;
            control.answer().await?;
            if change % 100 == 99 {
                let text = watch.get("/metrics").await?;
                let depth = text.lines().find_map(|line| line.strip_prefix("tidings_queue_depth "));
                if depth.and_then(|depth| depth.trim().parse::<usize>().ok()) >= Some(stalled) {
                    return Ok(());
                }
            }
        }
        Err(io::Error::other("the clients that do not read never made the server wait"))
    }

    async fn control(&self) -> io::Result<Connection> {
        let mut control = Connection::open(self.address).await?;
        control.begin(self.era).await?;
        control.send_bump(self.era, 1).await?;
        control.answer().await?;
        Ok(control)
    }

    async fn connect(&self, count: usize) -> io::Result<Vec<TcpStream>> {
        let one = |_| async {
            let mut connection = Connection::open(self.address).await?;
            connection.begin(self.era).await?;
            connection.listen(self.era).await
        };
        stream::iter(0..count).map(one).buffer_unordered(CONNECTING).try_collect().await
    }

    async fn lock_step(
        &self,
        control: &mut Connection,
        listeners: &Listeners,
        changes: usize,
    ) -> io::Result<LockStep> {
        let tally = listeners.tally();
        tally.delays.take();
        let cpu = cpu_micros(self.pid)?;
        let begun = Instant::now();
        let mut done = 0;
        while done < changes && (begun.elapsed() < LOCK_STEP || done < WARM_UP) {
            tally.target.set(tally.seen.get() + listeners.count());
            tally.asked.set(Instant::now());
            control.send_bump(self.era, 1).await?;
            let all = tokio::time::timeout(TOO_LONG, tally.reached.notified()).await;
            if all.is_err() || tally.lost.get() > 0 {
                let (seen, target, lost) = (tally.seen.get(), tally.target.get(), tally.lost.get());
                let text = format!("{seen} of {target} notices came, {lost} streams ended");
                return Err(io::Error::other(text));
            }
            control.answer().await?;
            done += 1;
        }
        let deliveries = (done * listeners.count()) as f64;
        let rate = deliveries / begun.elapsed().as_secs_f64();
        let cpu = (cpu_micros(self.pid)? - cpu) / deliveries;
        let mut delays = tally.delays.take();
        delays.sort_by(f64::total_cmp);
        Ok(LockStep { rate, cpu, delays })
    }

    async fn bursts(&self, control: &mut Connection, listeners: &Listeners) -> io::Result<Bursts> {
        let tally = listeners.tally();
        tally.target.set(usize::MAX);
        let (seen, cpu) = (tally.seen.get(), cpu_micros(self.pid)?);
        let bursts = (BURST_TOTAL / BURST / listeners.count()).clamp(1, BURSTS);
        let mut millis = Vec::new();
        for _ in 0..bursts {
            let begun = Instant::now();
            tally.last.set(begun);
            control.send_bump(self.era, BURST).await?;
            control.answer().await?;
            while tally.last.get().elapsed() < SILENCE {
                tokio::time::sleep(SILENCE / 4).await;
            }
            millis.push(tally.last.get().duration_since(begun).as_secs_f64() * 1e3);
        }
        millis.sort_by(f64::total_cmp);
        let each = (bursts * BURST * listeners.count()) as f64;
        let notices = (tally.seen.get() - seen) as f64 / each;
        let cpu = (cpu_micros(self.pid)? - cpu) / each;
        Ok(Bursts { millis: millis[bursts / 2], cpu, notices })
    }
}

struct LockStep {
    rate: f64,
    cpu: f64,
    /// Sorted.
    delays: Vec<f64>,
}

impl LockStep {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index is a small whole number"
    )]
    fn percentile(&self, part: f64) -> f64 {
        let at = ((self.delays.len().saturating_sub(1)) as f64 * part) as usize;
        self.delays.get(at).copied().unwrap_or(f64::NAN)
    }
}

struct Bursts {
    millis: f64,
    cpu: f64,
    notices: f64,
}
