//! Slow origins leave slots to quick and to new ones.

use std::collections::BTreeMap;

use model::Origin;

use super::origins::origin_spec;
use super::*;

const SLOTS: usize = 8;
const SLOW_JOBS: usize = 4;
const SLOW_REQUEST: Duration = Duration::from_secs(5);
/// How long a job of a slow origin takes.
const DRIP: Duration = Duration::from_secs(60);

/// A worker of eight slots. Origins from 100 on drip.
struct Case {
    bus: Arc<dyn Bus>,
    shares: OriginShares,
    /// Jobs in work, by origin.
    in_work: Arc<Mutex<BTreeMap<String, usize>>>,
    done: Arc<Mutex<Vec<String>>>,
    _stop: tokio_util::sync::DropGuard,
}

impl Case {
    async fn start() -> Self {
        let bus = bus_with(0).await;
        let shares = OriginShares::new(SLOTS, SLOW_JOBS, SLOW_REQUEST);
        let in_work: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let done: Arc<Mutex<Vec<String>>> = Arc::default();
        let (timed, working, ended) = (shares.clone(), Arc::clone(&in_work), Arc::clone(&done));
        let worker = Worker::new(Arc::clone(&bus), move |message: Message| {
            let (timed, working, ended) = (timed.clone(), Arc::clone(&working), Arc::clone(&ended));
            async move {
                let id = message.id.to_string();
                let (at, _) = id.split_once('-').unwrap();
                let is_slow = at.parse::<usize>().unwrap() >= 100;
                let origin: Origin = format!("http://h{at}.example.org").parse().unwrap();
                *working.lock().unwrap().entry(at.to_owned()).or_default() += 1;
                let request = timed.begin(&origin);
                sleep(if is_slow { DRIP } else { Duration::from_millis(1) }).await;
                drop(request);
                *working.lock().unwrap().get_mut(at).unwrap() -= 1;
                ended.lock().unwrap().push(id);
                HandlerResult::Done
            }
        });
        let worker = worker.within(Arc::new(Semaphore::new(SLOTS))).sharing_by_origin(shares.clone());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move { worker.run_origins(stopped).await });
        Self { bus, shares, in_work, done, _stop: stop.drop_guard() }
    }

    /// Queues so many jobs of an origin.
    async fn queue(&self, origin: usize, jobs: std::ops::Range<usize>) {
        let spec = origin_spec(origin, 4);
        let Filter::Fetch(at) = spec.filter().clone() else { unreachable!("a filter of an origin") };
        self.bus.open(spec).await.unwrap();
        for n in jobs {
            let queue = Queue::Fetch { origin: at.clone(), source: source() };
            let id = MessageId::new(format!("{origin}-{n}"));
            self.bus.publish(queue, id, "job".into()).await.unwrap();
        }
    }

    /// Jobs of dripping origins in work.
    fn dripping(&self) -> usize {
        self.in_work.lock().unwrap().iter().filter(|(at, _)| at.len() == 3).map(|(_, jobs)| jobs).sum()
    }

    fn is_done(&self, id: &str) -> bool {
        self.done.lock().unwrap().iter().any(|done| done == id)
    }
}

#[tokio::test(start_paused = true)]
async fn slow_origins_leave_slots_to_quick_ones_at_once_and_to_new_ones_once_they_are_known() {
    let case = Case::start().await;
    case.queue(0, 0..1).await;
    sleep(Duration::from_secs(1)).await;
    assert!(case.is_done("0-0"), "a job of an unknown origin");

    for origin in 100..105 {
        case.queue(origin, 0..16).await;
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!((case.dripping(), case.shares.slow_jobs()), (6, 0), "nothing is known of them yet");
    case.queue(0, 1..4).await;
    sleep(Duration::from_secs(1)).await;
    assert!(case.is_done("0-3"), "a quick origin has slots left");
    sleep(SLOW_REQUEST).await;
    assert_eq!(case.shares.slow_jobs(), 6, "each has a request that takes long");

    // After the first jobs, all are known that had one.
    sleep(DRIP).await;
    for minute in 0..8 {
        assert!(case.dripping() <= 6, "{}", case.dripping());
        sleep(DRIP).await;
        if minute > 4 {
            assert_eq!((case.dripping(), case.shares.slow_jobs()), (SLOW_JOBS, SLOW_JOBS), "{minute}");
        }
    }
    case.queue(1, 0..3).await;
    case.queue(0, 4..8).await;
    sleep(Duration::from_secs(1)).await;
    assert!(case.is_done("1-2"), "a new origin does not wait behind slow ones");
    assert!(case.is_done("0-7"));
    assert_eq!(case.dripping(), SLOW_JOBS);
}

#[tokio::test(start_paused = true)]
async fn jobs_that_exceed_the_limit_wait_and_are_all_done() {
    let case = Case::start().await;
    for origin in 100..103 {
        case.queue(origin, 0..4).await;
    }
    sleep(DRIP + Duration::from_secs(1)).await;
    assert_eq!(case.done.lock().unwrap().len(), 6, "as many as slow and unknown origins may have");
    sleep(DRIP * 4).await;
    assert_eq!((case.done.lock().unwrap().len(), case.dripping(), case.shares.slow_jobs()), (12, 0, 0));
}
