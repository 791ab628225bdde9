//! Tests of dates from the standards, from feeds, and of invalid ones.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    let found = Moment::parse(text).map(|moment| moment.to_string());
    assert_eq!(found.as_deref().unwrap_or("none"), expected, "{text}");
}

#[test]
fn the_dates_of_mail_are_read() {
    check("Thu, 01 Jan 2004 19:48:21 GMT", "2004-01-01T19:48:21Z");
    check("Thu, 01 Jan 04 19:48:21 GMT", "2004-01-01T19:48:21Z");
    check("Thu,  5 Apr 2012 10:00:00 GMT", "2012-04-05T10:00:00Z");
    check("Fri,24 Nov 2023 18:28:36 -0000", "2023-11-24T18:28:36Z");
    check("Mon, 13 Feb, 2012 06:28:00 UTC", "2012-02-13T06:28:00Z");
    check("Thu, 01 Jan 2004 00:00 GMT", "2004-01-01T00:00:00Z");
    check("Thu, 01 Jan 2004", "2004-01-01T00:00:00Z");
    check("1 January 2004 8:05 PM", "2004-01-01T20:05:00Z");
    check("Thu, 01 Jan 2004 19:48:21", "2004-01-01T19:48:21Z");
    check("Thu, 01 Jan 0100 00:00:01 +0100", "0099-12-31T23:00:01Z");
    check("Tue, 28 Feb 2017 12:00:00 -0000", "2017-02-28T12:00:00Z");
}

#[test]
fn the_dates_of_the_web_are_read() {
    check("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z");
    check("Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37Z");
    check("Sun Jul 15 01:16:00 +0000 2012", "2012-07-15T01:16:00Z");
    check("Thu Aug 30 2012 17:26:16 GMT+0200 (CEST)", "2012-08-30T15:26:16Z");
    check("August 30, 2012 17:26", "2012-08-30T17:26:00Z");
    check("1709251199", "2024-02-29T23:59:59Z");
    check("1709251199123", "2024-02-29T23:59:59Z");
    check("Fri, 2006/09/15 08:19:53 EDT", "2006-09-15T12:19:53Z");
    check("31.12.2003 10:14", "2003-12-31T10:14:00Z");
    check("12/31/2003", "2003-12-31T00:00:00Z");
    check("01/02/2003", "none");
}

#[test]
fn every_length_of_iso_8601_is_read() {
    check("2003", "2003-01-01T00:00:00Z");
    check("2003-12", "2003-12-01T00:00:00Z");
    check("2003-12-31", "2003-12-31T00:00:00Z");
    check("20031231", "2003-12-31T00:00:00Z");
    check("2003-365", "2003-12-31T00:00:00Z");
    check("2003365", "2003-12-31T00:00:00Z");
    check("2004-W53-6", "2005-01-01T00:00:00Z");
    check("2009W01", "2008-12-29T00:00:00Z");
    check("03-12-31", "2003-12-31T00:00:00Z");
    check("031231", "2003-12-31T00:00:00Z");
    check("03335", "2003-12-01T00:00:00Z");
    check("-0312", "2003-12-01T00:00:00Z");
    check("-03-12", "2003-12-01T00:00:00Z");
    check("-03-12-31", "2003-12-31T00:00:00Z");
    check("-03-12-31T10:14:55+01:00", "2003-12-31T09:14:55Z");
    check("2003-12-31T10:14Z", "2003-12-31T10:14:00Z");
    check("2003-12-31T10:14:55.1234Z", "2003-12-31T10:14:55Z");
    check("2003-12-31T10:14:55,12-08:00", "2003-12-31T18:14:55Z");
    check("20031231T101455Z", "2003-12-31T10:14:55Z");
    check("20031231101455", "2003-12-31T10:14:55Z");
    check("2004-07-08 23:56:58 -00:20", "2004-07-09T00:16:58Z");
    check("2004-07-08 23:56:58.0", "2004-07-08T23:56:58Z");
    check("2003-012-31T10:14:55+00:00", "2003-12-31T10:14:55Z");
    check("2003-12-31T10:14:55 EST", "2003-12-31T15:14:55Z");
    check("2004-02-28T18:14:55-08:00", "2004-02-29T02:14:55Z");
}

#[test]
fn zones_have_many_names() {
    check("Thu, 30 Apr 2015 08:57:00 MET", "2015-04-30T07:57:00Z");
    check("Thu, 30 Apr 2015 08:57:00 CEST", "2015-04-30T06:57:00Z");
    check("Thu, 30 Apr 2015 08:57:00 MSK", "2015-04-30T05:57:00Z");
    check("Thu, 30 Apr 2015 08:57:00 IST", "2015-04-30T03:27:00Z");
    check("Thu, 30 Apr 2015 08:57:00 NZST", "2015-04-29T20:57:00Z");
    check("Thu, 30 Apr 2015 08:57:00 AEST", "2015-04-29T22:57:00Z");
    check("Thu, 30 Apr 2015 08:57:00 A", "2015-04-30T09:57:00Z");
    check("Wed, 19 Aug 2009 18:28:00 Etc/GMT", "2009-08-19T18:28:00Z");
    check("Wed, 19 Feb 2012 22:40:00 GMT-01:01", "2012-02-19T23:41:00Z");
    check("Mon, 26 January 2004 16:31:00 AT", "2004-01-26T20:31:00Z");
    check("Thu, 30 Apr 2015 08:57:00 Nowhere/Else", "2015-04-30T08:57:00Z");
}

#[test]
fn months_are_read_in_many_languages() {
    check("Κυρ, 11 Ιούλ 2004 12:00:00 EST", "2004-07-11T17:00:00Z");
    check("2004-július-13T9:15-05:00", "2004-07-13T14:15:00Z");
    check("2004-05-25 오후 11:23:17", "2004-05-25T14:23:17Z");
    check("2004년 05월 28일  01:31:15", "2004-05-27T16:31:15Z");
    check("2004年05月28日 01:31:15", "2004-05-28T01:31:15Z");
    check("Mi, 10 Dez 2014 10:00:00 +0100", "2014-12-10T09:00:00Z");
    check("mar., 15 juin 2004 12:00:00 GMT", "2004-06-15T12:00:00Z");
    check("Sáb, 3 de agosto de 2013 10:00", "2013-08-03T10:00:00Z");
    check("lun, 5 maggio 2008 10:00:00 +0200", "2008-05-05T08:00:00Z");
    check("Ter, 04 Out 2011 10:00:00 GMT", "2011-10-04T10:00:00Z");
    check("ma, 14 mei 2012 10:00:00 +0200", "2012-05-14T08:00:00Z");
    check("wto, 06 paź 2009 10:00:00 GMT", "2009-10-06T10:00:00Z");
    check("Пн, 09 фев 2015 10:00:00 +0300", "2015-02-09T07:00:00Z");
    check("tis, 01 okt 2013 10:00:00 +0200", "2013-10-01T08:00:00Z");
}

#[test]
fn leap_seconds_and_the_end_of_the_day_are_times() {
    check("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z");
    check("2016-12-31T24:00:00Z", "2017-01-01T00:00:00Z");
    check("2016-02-29", "2016-02-29T00:00:00Z");
}

#[test]
fn what_is_no_date_is_none() {
    for text in [
        "",
        "soon",
        "2003-12-31T25:14:55Z",
        "2003-12-31T10:61:55Z",
        "2003-13-01",
        "2003-02-29",
        "2013-xx-27",
        "0000-00-00T00:00:00Z",
        // Without a year it would be another day every year.
        "--12-31",
        "-031231",
        "9999-12-31T23:59:59-01:00",
        "Sun, 16 Dec 2012 1:2:3:4 GMT",
        "Sun, 16 zzz 2012 11:47:32 GMT",
        "Sun, Dec x 2012 11:47:32 GMT",
        "Sun, 16 Dec zz 11:47:32 GMT",
        "Sun, 16 Dec 2012 11:47:32 +zz:00",
        "Sun, 99 Jun 2009 12:00:00 GMT",
        "99999999999999999999",
    ] {
        check(text, "none");
    }
}

#[test]
fn a_moment_is_written_to_the_second_or_the_millisecond() {
    let check = |millis: i64, expected: [&str; 2]| {
        let moment = Moment::from_millis(millis);
        assert_eq!([moment.to_string(), format!("{moment:.3}")], expected);
    };
    check(0, ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"]);
    check(-1, ["1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999Z"]);
    check(951_782_400_000, ["2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000Z"]);
    check(1_709_251_199_250, ["2024-02-29T23:59:59Z", "2024-02-29T23:59:59.250Z"]);
    check(1_794_787_200_007, ["2026-11-16T00:00:00Z", "2026-11-16T00:00:00.007Z"]);
    check(4_107_542_400_000, ["2100-03-01T00:00:00Z", "2100-03-01T00:00:00.000Z"]);
    check(i64::MIN, ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"]);
    check(i64::MAX, ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999Z"]);
}

#[test]
fn the_time_of_a_file_is_a_moment() {
    let second = Duration::from_secs(1);
    assert_eq!(Moment::from(SystemTime::UNIX_EPOCH + second).unix(), 1);
    assert_eq!(Moment::from(SystemTime::UNIX_EPOCH - second).unix(), -1);
    let far = SystemTime::UNIX_EPOCH + second * u32::MAX * 100;
    assert_eq!(Moment::from(far), Moment::LAST);
}

#[test]
fn sums_end_with_the_last_moment() {
    let hour = Duration::from_hours(1);
    assert_eq!(Moment::EPOCH.after(hour).since(Moment::EPOCH), hour);
    assert_eq!(Moment::EPOCH.since(Moment::LAST), Duration::ZERO);
    assert_eq!(Moment::LAST.after(hour), Moment::LAST);
    assert_eq!(Moment::EPOCH.after(Duration::MAX), Moment::LAST);
}

proptest! {
    #[test]
    fn a_moment_is_read_as_it_is_written(seconds in -62_135_596_800_i64..253_402_300_800) {
        let moment = Moment::from_unix(seconds).unwrap();
        prop_assert_eq!(Moment::parse(&moment.to_string()), Some(moment));
    }

    #[test]
    fn any_text_is_a_date_or_none(text in "[0-9A-Za-zäé年월:+,./ T-]{0,40}") {
        if let Some(moment) = Moment::parse(&text) {
            prop_assert_eq!(Moment::parse(&moment.to_string()), Some(moment));
        }
    }
}
