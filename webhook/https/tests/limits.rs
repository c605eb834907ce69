//! Limits against clients that are slow, send half a request, send too much, or are too many.

mod harness;

use std::io::ErrorKind;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use harness::{A_MILLION_EACH, Client, Running, eventually, get_request, hold_all, post_request, send, text};
use http_body_util::BodyExt;
use popcell_https::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Limits short enough to be met in a test; the others stay far away.
fn short() -> Limits {
    let soon = Duration::from_millis(200);
    Limits {
        handshake: soon,
        first_request: soon,
        upload: soon,
        body: 1000,
        ..Limits::default()
    }
}

#[tokio::test]
async fn a_body_of_the_limit_passes_and_one_byte_more_is_413_on_both_protocols() {
    let (running, authority, _volume) = Running::simple(Limits::default()).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let limit = Limits::default().body;
    for size in [limit, limit + 1, limit + 5_000_000] {
        let expected = if size > limit { 413 } else { 200 };
        let response = client
            .http1()
            .await
            .send_request(post_request("/length", vec![b'x'; size]))
            .await
            .unwrap();
        assert_eq!(response.status(), expected, "http/1.1 {size}");
        let response = client
            .http2()
            .await
            .0
            .send_request(post_request("/length", vec![b'x'; size]))
            .await
            .unwrap();
        assert_eq!(response.status(), expected, "h2 {size}");
    }
}

#[tokio::test]
async fn a_chunked_body_is_counted_as_it_comes() {
    let (running, authority, _volume) = Running::simple(short()).await;
    let mut stream = Client::new(running.address, &[authority.pem()])
        .dial("http/1.1")
        .await
        .unwrap();
    stream
        .write_all(b"POST /length HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        .await
        .unwrap();
    for _ in 0..11 {
        stream
            .write_all(format!("64\r\n{}\r\n", "x".repeat(100)).as_bytes())
            .await
            .unwrap();
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 413");
}

#[tokio::test]
async fn connections_without_a_handshake_are_ended() {
    let (running, _authority, _volume) = Running::simple(short()).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
    assert_eq!(running.status.handshake_errors.load(Relaxed), 1);
}

#[tokio::test]
async fn slow_loris_is_ended_before_its_first_request() {
    let (running, authority, _volume) = Running::simple(short()).await;
    let mut stream = Client::new(running.address, &[authority.pem()])
        .dial("http/1.1")
        .await
        .unwrap();
    // One byte of a head at a time: no byte restarts the clock.
    let mut ended = false;
    for byte in b"GET /hello HTTP/1.1\r\nhost: ".iter().cycle() {
        if stream.write_all(&[*byte]).await.is_err() || stream.flush().await.is_err() {
            ended = true;
            break;
        }
        if let Ok(read) = tokio::time::timeout(Duration::from_millis(10), stream.read(&mut [0; 1])).await {
            ended = read.unwrap_or(0) == 0;
            break;
        }
    }
    assert!(ended);
    assert_eq!(running.status.silent.load(Relaxed), 1);
}

#[tokio::test]
async fn half_a_body_is_answered_408() {
    let (running, authority, _volume) = Running::simple(short()).await;
    let mut stream = Client::new(running.address, &[authority.pem()])
        .dial("http/1.1")
        .await
        .unwrap();
    stream
        .write_all(b"POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\nhalf")
        .await
        .unwrap();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 408");
}

#[tokio::test(flavor = "multi_thread")]
async fn others_are_served_beside_a_thousand_idle_connections() {
    let limits = Limits {
        first_request: Duration::from_mins(5),
        handshake: Duration::from_mins(5),
        connections_per_peer: 1024,
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(limits).await;
    let mut idle = Vec::new();
    for _ in 0..1000 {
        idle.push(TcpStream::connect(running.address).await.unwrap());
    }
    // Few begin at once. Those that do not go on make way, and whoever comes after them has its turn.
    let client = Client::new(running.address, &[authority.pem()]);
    let response = client.http1().await.send_request(get_request("/hello")).await.unwrap();
    assert_eq!(text(response).await, "hello");
    assert!(running.status.open.load(Relaxed) <= 257);
    let mut kept = Vec::new();
    for _ in 0..400 {
        let mut sender = client.http1().await;
        assert_eq!(text(send(&mut sender, get_request("/hello")).await).await, "hello");
        kept.push(sender);
    }
    assert!(running.status.open.load(Relaxed) >= 400, "who has asked stays");
    drop((idle, kept));
    eventually("all are gone", async || running.status.open.load(Relaxed) <= 1).await;
}

#[tokio::test]
async fn connections_over_the_cap_are_closed_and_room_is_used_again() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(limits).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let (mut one, mut two) = (client.http1().await, client.http1().await);
    let held = [&mut one, &mut two].map(|sender| tokio::spawn(sender.send_request(get_request("/held"))));
    eventually("both are being answered", async || {
        running.status.in_flight.load(Relaxed) == 2
    })
    .await;
    assert!(client.dial("http/1.1").await.is_err());
    assert_eq!(running.status.refused.load(Relaxed), 1);
    running.gate.add_permits(2);
    for held in held {
        assert_eq!(text(held.await.unwrap().unwrap()).await, "held");
    }
    assert_eq!(text(send(&mut one, get_request("/hello")).await).await, "hello");
    drop(two);
    eventually("the place is free", async || running.status.open.load(Relaxed) == 1).await;
    client.dial("http/1.1").await.unwrap();
    assert_eq!(running.status.evicted.load(Relaxed), 0);
}

#[tokio::test]
async fn one_connection_more_takes_the_place_of_an_idle_one() {
    let limits = Limits {
        connections_per_peer: 3,
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(limits).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let mut used = client.http1().await;
    assert_eq!(text(send(&mut used, get_request("/hello")).await).await, "hello");
    for _ in 0..3 {
        let mut silent = Vec::new();
        for _ in 0..2 {
            let mut stream = client.dial("http/1.1").await.unwrap();
            stream.write_all(b"GET /hello HTTP/1.1\r\nho").await.unwrap();
            silent.push(stream);
        }
        // They have had their time.
        tokio::time::sleep(Duration::from_millis(600)).await;
        let mut other = client.http1().await;
        assert_eq!(text(send(&mut other, get_request("/hello")).await).await, "hello");
        assert_eq!(silent[0].read(&mut [0; 1]).await.unwrap_or(0), 0);
    }
    assert!(running.status.evicted.load(Relaxed) >= 1);
    assert_eq!(running.status.refused.load(Relaxed), 0);
}

#[tokio::test]
async fn a_connection_that_ends_by_a_panic_gives_its_place_back() {
    let limits = Limits {
        connections_per_peer: 1,
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(limits).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let mut broken = client.http1().await;
    assert!(broken.send_request(get_request("/panic")).await.is_err());
    eventually("it is closed", async || running.status.open.load(Relaxed) == 0).await;
    let mut other = client.http1().await;
    assert_eq!(text(send(&mut other, get_request("/hello")).await).await, "hello");
    assert_eq!(
        running.status.evicted.load(Relaxed) + running.status.refused.load(Relaxed),
        0
    );
}

#[tokio::test]
async fn idle_connections_outlive_every_first_request_limit() {
    let (running, authority, _volume) = Running::simple(short()).await;
    let mut sender = Client::new(running.address, &[authority.pem()]).http1().await;
    assert_eq!(text(send(&mut sender, get_request("/hello")).await).await, "hello");
    // Twice the limit for a first request: once one was answered, only the idle time counts.
    tokio::time::sleep(2 * short().first_request).await;
    assert_eq!(text(send(&mut sender, get_request("/hello")).await).await, "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_uploads_share_a_bounded_room_and_small_requests_pass() {
    let limits = Limits {
        body: 1_000_000,
        bodies: A_MILLION_EACH,
        upload: Duration::from_secs(4),
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(limits).await;
    let client = Client::new(running.address, &[authority.pem()]);
    // It counts for what it has sent, and not for what it announces.
    let mut slow = client.begin_upload(1_000_000, 10_000).await;
    eventually("it is being received", async || {
        running.status.in_flight.load(Relaxed) == 1
    })
    .await;
    let large = async || send(&mut client.http1().await, post_request("/length", vec![b'x'; 900_000])).await;
    assert_eq!(text(large().await).await, "900000");
    assert_eq!(running.status.evicted.load(Relaxed), 0);

    let holds = async |bytes| eventually("it is held", async || running.status.held.load(Relaxed) >= bytes).await;
    slow.write_all(&vec![b'x'; 900_000]).await.unwrap();
    holds(900_000).await;
    // The other has the reserve.
    let mut other = client.begin_upload(1_000_000, 900_000).await;
    holds(1_800_000).await;
    // Now they are in the way of others, and have been for long.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let response = send(&mut client.http1().await, post_request("/length", vec![b'x'; 1000])).await;
    assert_eq!(text(response).await, "1000");
    assert_eq!(running.status.evicted.load(Relaxed), 0);
    assert_eq!(text(large().await).await, "900000");
    assert_eq!(running.status.evicted.load(Relaxed), 1);
    let (mut first, mut second) = ([0; 1], [0; 1]);
    let read = tokio::select! {
        read = slow.read(&mut first) => read,
        read = other.read(&mut second) => read,
    };
    assert_eq!(read.unwrap_or(0), 0, "one is cut");
    drop((slow, other));
    eventually("all is given back", async || running.status.held.load(Relaxed) == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_being_answered_hold_their_room_and_others_are_turned_away() {
    let limits = Limits {
        body: 1_000_000,
        bodies: A_MILLION_EACH,
        upload: Duration::from_secs(1),
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(limits).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let kept = hold_all(&running, &client).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    let large = async || send(&mut client.http1().await, post_request("/length", vec![b'x'; 900_000])).await;
    assert_eq!(large().await.status(), 429);
    let response = send(&mut client.http1().await, post_request("/length", vec![b'x'; 1000])).await;
    assert_eq!(text(response).await, "1000");
    running.gate.add_permits(2);
    for kept in kept {
        assert_eq!(text(kept.await.unwrap()).await, "1000000");
    }
    assert_eq!(text(large().await).await, "900000");
    assert_eq!(
        running.status.evicted.load(Relaxed),
        0,
        "nobody is cut who is being served"
    );
}

#[tokio::test]
async fn an_answer_that_is_not_read_in_time_is_cut_and_its_memory_given_back() {
    let limits = Limits {
        write: Duration::from_secs(1),
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(limits).await;
    let client = Client::new(running.address, &[authority.pem()]);
    for alpn in ["http/1.1", "h2"] {
        let size = 8_000_000;
        let response = if alpn == "h2" {
            let (mut sender, _) = client.http2().await;
            sender.send_request(get_request(&format!("/bytes/{size}"))).await
        } else {
            let mut sender = client.http1().await;
            sender.send_request(get_request(&format!("/bytes/{size}"))).await
        };
        let response = response.unwrap();
        assert_eq!(response.status(), 200);
        assert!(running.status.held.load(Relaxed) >= size, "{alpn}");
        eventually("its time is over", async || running.status.held.load(Relaxed) == 0).await;
        // What was on its way may still be read; the end of it is not there.
        assert!(response.into_body().collect().await.is_err(), "{alpn}");
    }
    assert_eq!(running.status.unread.load(Relaxed), 2);
}

#[tokio::test]
async fn an_unread_answer_counts_beyond_the_kernels_part() {
    let (running, authority, _volume) = Running::simple(Limits::default()).await;
    let client = Client::new(running.address, &[authority.pem()]).taking_little();
    let size = 200_000;
    let mut stream = client.dial("http/1.1").await.unwrap();
    let request = format!("GET /bytes/{size} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    eventually("it is held", async || running.status.held.load(Relaxed) >= size).await;
    // The kernel takes what it takes.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(running.status.held.load(Relaxed) >= size);
    drop(stream);
    eventually("it is given back", async || running.status.held.load(Relaxed) == 0).await;
}

#[tokio::test]
async fn unread_answers_keep_no_request_out() {
    let limits = Limits {
        body: 1_000_000,
        bodies: A_MILLION_EACH,
        answers: A_MILLION_EACH,
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(limits).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let mut unread = Vec::new();
    for held in 1..=2 {
        let mut stream = client.clone().taking_little().dial("http/1.1").await.unwrap();
        stream
            .write_all(b"GET /bytes/900000 HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
        stream.flush().await.unwrap();
        eventually("it is held", async || {
            running.status.held.load(Relaxed) >= held * 900_000
        })
        .await;
        unread.push(stream);
    }
    let response = send(&mut client.http1().await, post_request("/length", vec![b'x'; 900_000])).await;
    assert_eq!(text(response).await, "900000");
    assert_eq!(running.status.evicted.load(Relaxed), 0, "nobody had to go for it");
}

#[tokio::test]
async fn what_the_kernel_has_of_an_answer_that_is_not_read_goes_with_its_connection() {
    let limits = Limits {
        write: Duration::from_secs(1),
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(limits).await;
    let client = Client::new(running.address, &[authority.pem()]).taking_little();
    // The kernel takes all of one, and a part of the other.
    let mut clients = Vec::new();
    for size in [50_000, 200_000] {
        let mut stream = client.dial("http/1.1").await.unwrap();
        let request = format!("GET /bytes/{size} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        clients.push(stream);
    }
    eventually("both are there", async || running.status.open.load(Relaxed) == 2).await;
    eventually("their time is over", async || running.status.open.load(Relaxed) == 0).await;
    let last = clients.pop().unwrap();
    let end = last.into_inner().0.read_to_end(&mut Vec::new()).await;
    assert_eq!(end.map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
}

#[tokio::test]
async fn http2_connections_have_an_idle_limit_and_few_streams() {
    let limits = Limits {
        idle: Duration::from_secs(1),
        ..Limits::default()
    };
    let (running, authority, _volume) = Running::simple(limits).await;
    let client = Client::new(running.address, &[authority.pem()]);
    let (mut sender, connection) = client.http2().await;
    // With its answer the server's settings have come.
    let first = sender.send_request(get_request("/hello")).await.unwrap();
    assert_eq!(text(first).await, "hello");
    let calls: Vec<_> = (0..40)
        .map(|_| tokio::spawn(sender.send_request(get_request("/held"))))
        .collect();
    eventually("32 streams are open", async || {
        running.status.in_flight.load(Relaxed) == 32
    })
    .await;
    tokio::time::sleep(Duration::from_millis(1600)).await;
    assert_eq!(
        running.status.in_flight.load(Relaxed),
        32,
        "nothing is idle here, and no stream more"
    );
    running.gate.add_permits(40);
    for call in calls {
        assert_eq!(text(call.await.unwrap().unwrap()).await, "held");
    }
    tokio::time::timeout(Duration::from_secs(10), connection)
        .await
        .expect("it is ended")
        .unwrap()
        .unwrap();
    assert_eq!(running.status.evicted.load(Relaxed), 0);
}
