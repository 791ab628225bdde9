//! The notice that caused a change.

use super::*;

fn list_notice(number: u64) -> Input {
    Input::ListNotice(ListKind::Tools, Some(number))
}

fn updated(number: u64) -> Input {
    Input::Updated(URI.into(), Some(number))
}

/// The numbers of the notices that the events since name.
fn named(bench: &mut Bench) -> Vec<Option<u64>> {
    std::iter::from_fn(|| bench.events.try_next())
        .filter_map(|event| match event {
            Event::ToolsChanged(change) => Some(change.notice),
            Event::ResourceContentChanged { notice, .. }
            | Event::ResourceUpdated { notice, .. }
            | Event::ResourceGone { notice, .. } => Some(notice),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_names_the_newest_notice_before_it_was_asked_for() {
    let mut bench = Bench::new();
    let (first, _) = page_of(&bench.tell(list_notice(5)));
    bench.tell(list_notice(6));
    bench.tell(list_notice(7));
    bench.page(first, &["a"], None);
    assert_eq!(named(&mut bench), [Some(5)], "the others came later");
    let (second, _) = page_of(&bench.wait(25));
    bench.page(second, &["b"], None);
    assert_eq!(named(&mut bench), [Some(7)]);
    bench.wait(1000);
    let (third, _) = page_of(&bench.tell(Input::Reload(List::Tools)));
    bench.page(third, &["c"], None);
    assert_eq!(named(&mut bench), [None], "somebody asked for it");
}

#[tokio::test(start_paused = true)]
async fn a_load_that_is_tried_again_still_names_its_notice() {
    let mut bench = Bench::new();
    let (first, _) = page_of(&bench.tell(list_notice(5)));
    let answer = PageAnswer::Tools(Err(refused(-32603)));
    bench.tell(Input::Page { ticket: first, answer });
    let (again, _) = page_of(&bench.wait(1000));
    bench.page(again, &["a"], None);
    assert_eq!(named(&mut bench), [Some(5), Some(5)]);
}

#[tokio::test(start_paused = true)]
async fn a_content_names_the_notice_because_of_which_it_was_read() {
    let mut bench = Bench::new();
    bench.subscribe();
    bench.tell(updated(4));
    assert_eq!(named(&mut bench), [Some(4)], "nobody has read it");
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    bench.wait(1000);
    let read = read_of(&bench.tell(updated(5)));
    bench.tell(updated(6));
    bench.reread(read, Ok("two"));
    assert_eq!(named(&mut bench), [None, Some(5)], "one was asked for");
    let read = read_of(&bench.wait(25));
    bench.reread(read, Err(refused(-32002)));
    assert_eq!(named(&mut bench), [Some(6)], "it is gone");
}

#[tokio::test(start_paused = true)]
async fn after_a_loss_no_notice_is_named() {
    let mut bench = Bench::new();
    bench.tell(list_notice(5));
    bench.tell(Input::Gone { keep: true });
    let offer = Offer { lists: vec![List::Tools], announced: ListKinds::ALL, ..Offer::default() };
    let (first, _) = page_of(&bench.tell(Input::Connected(offer)));
    bench.page(first, &["a"], None);
    assert_eq!(named(&mut bench), [None]);
}
