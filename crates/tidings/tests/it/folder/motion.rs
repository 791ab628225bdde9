//! A folder that does not rest: files rewritten without end, trees that move as a whole.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::*;

/// How often each thing was told to a listener since the last time.
fn counted(listener: &Listener) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    listener.told(&mut told);
    told
}

/// Works in the folder on another thread, as other programs do.
async fn meanwhile(plot: Plot, work: impl FnOnce(&Plot) + Send + 'static) {
    tokio::task::spawn_blocking(move || work(&plot)).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_rewritten_without_end_is_told_about_four_times_a_second() {
    let yard = Yard::new(|plot| plot.write("resources/log.txt", "0")).await;
    let mut listener = yard.listener(Way::Stdio).await;
    listener.subscribe(&yard.plot().uri("resources/log.txt")).await;
    let begun = Instant::now();
    meanwhile(yard.plot(), move |plot| {
        for number in 0.. {
            plot.write("resources/log.txt", number.to_string());
            if begun.elapsed() > Duration::from_millis(1500) {
                break;
            }
        }
    })
    .await;
    let quarters = usize::try_from(begun.elapsed().as_millis() / 250).unwrap();
    let told = counted(&listener).get("updated log.txt").copied().unwrap_or_default();
    // A few may follow each other before they are spread.
    assert!(
        (1..=quarters + 4).contains(&told),
        "{told} notices in {quarters} quarters of a second"
    );
}

#[tokio::test]
async fn a_checkout_of_2000_files_is_told_at_most_twice() {
    let mut yard = Yard::new(|plot| plot.write("resources/a.txt", "a")).await;
    let mut listeners = Listeners(vec![yard.listener(Way::Stdio).await]);
    meanwhile(yard.plot(), |plot| {
        for number in 0..2000 {
            plot.write(&format!("resources/d{}/r{number}.txt", number % 20), "x");
        }
    })
    .await;
    yard.fence(&mut listeners).await;
    let told = counted(&listeners.0[0]);
    assert!(told.values().all(|count| *count <= 2), "{told:?}");
    assert!(told.contains_key("resources"), "{told:?}");
}

/// As `git stash` and `git stash pop` do.
#[tokio::test]
async fn a_tree_that_ends_where_it_began_is_silence() {
    let files = || (0..200).map(|number| format!("resources/r{number}.txt"));
    let mut yard = Yard::new(|plot| files().for_each(|file| plot.write(&file, "x"))).await;
    let mut listeners = yard.listeners().await;
    meanwhile(yard.plot(), move |plot| {
        files().for_each(|file| plot.remove(&file));
        files().for_each(|file| plot.write(&file, "x"));
    })
    .await;
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
}
