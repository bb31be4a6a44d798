//! `#[instrument]` enters functions of every sort, with their names and places.

mod live;

use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use live::Live;
use treering_runtime::{Options, instrument, scope};

/// One recording for all tests of the process.
static LIVE: Mutex<Option<Live>> = Mutex::new(None);

fn recorded(test: impl FnOnce(&Live)) {
    let mut live = LIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    test(live.get_or_insert_with(|| Live::record("instrument", Options::default())));
}

fn calls(live: &Live, name: &str) -> u64 {
    live.nodes(&format!("instrument::{name}")).iter().map(|(_, node, _)| node.calls).sum()
}

#[instrument]
fn plain(number: u32) -> u32 {
    if number == 3 {
        return 30;
    }
    number * 2
}

#[instrument]
pub(crate) fn generic<T: Copy, F, const N: usize>(value: &T, change: F) -> [T; N]
where
    F: Fn(&T) -> T,
{
    [change(value); N]
}

#[instrument]
fn opaque(up_to: u32) -> impl Iterator<Item = u32> {
    0..up_to
}

#[instrument]
unsafe fn dangerous(place: *const u32) -> u32 {
    // SAFETY: by the caller's word.
    unsafe { *place }
}

#[instrument]
extern "C" fn foreign(number: i32) -> i32 {
    number + 1
}

#[instrument]
fn r#match<'a>(text: &'a str, _other: &str) -> &'a str {
    #![allow(clippy::needless_return)]
    #![expect(unused_variables)]
    let unused = 1;
    return text;
}

struct Solver {
    steps: u32,
}

impl Solver {
    #[instrument]
    pub(crate) fn step(&mut self) -> &mut Self {
        self.steps += 1;
        self
    }
}

trait Shape {
    #[instrument]
    fn area(&self) -> u32 {
        1
    }
}

impl Shape for Solver {}

macro_rules! made {
    ($vis:vis $name:ident -> $returned:ty $body:block) => {
        #[instrument]
        $vis fn $name() -> $returned $body
    };
}

made!(pub(crate) by_macro -> u32 { 7 });

#[test]
fn functions_of_every_sort_are_entered_once_for_each_call() {
    recorded(|live| {
        assert_eq!((plain(1), plain(3)), (2, 30));
        assert_eq!(generic::<_, _, 3>(&2, |value| value + 1), [3; 3]);
        assert_eq!(generic::<_, _, 1>(&2.0, |value| *value), [2.0]);
        assert_eq!(opaque(3).count(), 3);
        // SAFETY: the place is that of a number that lives.
        assert_eq!(unsafe { dangerous(&7) }, 7);
        assert_eq!(foreign(1), 2);
        assert_eq!(r#match("a", "b"), "a");
        assert_eq!(Solver { steps: 0 }.step().step().area(), 1);
        assert_eq!(by_macro(), 7);
        let expected = [
            ("plain", 2),
            ("generic", 2),
            ("opaque", 1),
            ("dangerous", 1),
            ("foreign", 1),
            ("match", 1),
            ("Solver::step", 2),
            ("Shape::area", 1),
            ("by_macro", 1),
        ];
        for (name, count) in expected {
            assert_eq!(calls(live, name), count, "{name}");
        }
    });
}

#[instrument]
#[allow(clippy::missing_const_for_fn)]
fn placed() {}

#[test]
fn a_function_has_its_own_file_and_line() {
    recorded(|live| {
        placed();
        let source = include_str!("instrument.rs");
        let line = source.lines().position(|line| line.starts_with("fn placed")).expect("the function") + 1;
        assert_eq!(live.place("instrument::placed"), (file!().to_owned(), line as u32));
    });
}

#[instrument(name = "another name")]
fn renamed() {}

#[instrument(timed_one_in = 4, name = concat!("a", "b"))]
fn seldom_timed() {}

#[test]
fn names_and_timing_can_be_chosen() {
    recorded(|live| {
        renamed();
        assert!(live.nodes("another name").iter().any(|(callers, node, _)| callers == "/" && node.calls > 0));
        (0..4000).for_each(|_| seldom_timed());
        let node = live.node("ab");
        assert_eq!(node.calls, 4000);
        assert!((990..=1010).contains(&node.timed), "{}", node.timed);
    });
}

#[test]
fn a_panic_leaves_the_function() {
    #[instrument]
    fn failing() {
        panic!("as it should");
    }
    recorded(|live| {
        let failed = std::panic::catch_unwind(failing);
        assert!(failed.is_err());
        renamed();
        let nodes = live.nodes("another name");
        assert!(nodes.iter().all(|(callers, ..)| !callers.contains("failing")), "{nodes:?}");
        assert_eq!(live.node("instrument::failing").timed, 1);
    });
}

/// Is ready after this many polls.
struct After(u32);

impl Future for After {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context) -> Poll<()> {
        match self.0 {
            0 => Poll::Ready(()),
            left => {
                self.0 = left - 1;
                Poll::Pending
            }
        }
    }
}

/// Polls a future until it is ready, and says how often.
fn run<F: Future>(future: F) -> (F::Output, u32) {
    let mut future = pin!(future);
    let mut polls = 0;
    loop {
        polls += 1;
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return (done, polls);
        }
        scope!("elsewhere");
    }
}

#[instrument]
async fn waiting<T: Copy>(value: &T, polls: u32) -> Result<T, std::num::ParseIntError> {
    let polls = polls + "0".parse::<u32>()?;
    After(polls).await;
    inner().await;
    Ok(*value)
}

#[instrument]
async fn inner() {
    After(1).await
}

#[instrument]
async fn dropped() -> impl Iterator<Item = u32> {
    After(u32::MAX).await;
    0..1
}

#[test]
fn a_future_is_one_call_however_often_it_is_polled() {
    recorded(|live| {
        assert_eq!(run(waiting(&5, 3)), (Ok(5), 5));
        let outer = live.node("instrument::waiting");
        let nodes = live.nodes("instrument::inner");
        assert_eq!((outer.calls, outer.timed), (1, 1));
        assert_eq!(nodes.len(), 1, "{nodes:?}");
        let (callers, node, _) = &nodes[0];
        assert_eq!(callers, "//instrument::waiting");
        assert_eq!((node.calls, node.timed), (1, 1));
        // Five polls took longer than the first of them.
        assert!(outer.total > outer.greatest);
        // Nothing is open between polls.
        assert!(live.nodes("elsewhere").iter().all(|(callers, ..)| callers == "/"));
    });
}

#[test]
fn a_future_that_is_dropped_half_way_has_been_left() {
    recorded(|live| {
        let mut future = Box::pin(dropped());
        for _ in 0..3 {
            assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        drop(future);
        assert_eq!(live.node("instrument::dropped").calls, 1);
        renamed();
        assert!(live.nodes("another name").iter().all(|(callers, ..)| !callers.contains("dropped")));
    });
}

#[test]
fn a_future_that_calls_itself_is_counted_as_calls_and_not_as_polls() {
    #[instrument]
    async fn descending(depth: u32) -> u32 {
        After(1).await;
        match depth {
            0 => 0,
            _ => Box::pin(descending(depth - 1)).await + 1,
        }
    }
    recorded(|live| {
        assert_eq!(run(descending(4)), (4, 6));
        let node = live.node("instrument::descending");
        assert_eq!((node.calls, node.recursive), (5, 4));
    });
}

#[test]
fn futures_move_between_threads() {
    #[instrument]
    async fn travelling() -> u32 {
        After(1).await;
        7
    }
    recorded(|live| {
        let mut future = Box::pin(travelling());
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(std::thread::spawn(move || run(future).0).join().expect("the thread"), 7);
        let nodes = live.nodes("instrument::travelling");
        assert_eq!(nodes.iter().map(|(_, node, _)| node.calls).sum::<u64>(), 1);
        assert!(nodes.iter().all(|(_, node, _)| node.total > 0));
        assert_eq!(nodes.len(), 2);
    });
}
