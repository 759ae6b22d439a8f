//! An axum service and its tests on a paused clock, once with `tokio::time` and once with
//! `tickless::tokio_time`. The two modules below differ in their import only.

/// The service and its tests, with the module `time` of where the macro is expanded.
macro_rules! service_and_tests {
    () => {
        use axum::Router;
        use axum::body::Body;
        use axum::extract::{Path, Request, State};
        use axum::http::StatusCode;
        use axum::routing::get;
        use std::sync::Arc;
        use std::sync::atomic::{AtomicU64, Ordering};
        use std::time::Duration;
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        use tower::ServiceExt;

        const SECOND: Duration = Duration::from_secs(1);

        type Uptime = Arc<AtomicU64>;

        async fn slow(Path(seconds): Path<u32>) -> (StatusCode, String) {
            let begin = time::Instant::now();
            let work = time::sleep(SECOND * seconds);
            let status = match time::timeout(30 * SECOND, work).await {
                Ok(()) => StatusCode::OK,
                Err(_) => StatusCode::GATEWAY_TIMEOUT,
            };
            (status, begin.elapsed().as_secs().to_string())
        }

        fn service() -> Router {
            let uptime = Uptime::default();
            let counted = Arc::clone(&uptime);
            tokio::spawn(async move {
                let mut ticks = time::interval(SECOND);
                loop {
                    ticks.tick().await;
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            });
            let show = |State(uptime): State<Uptime>| async move {
                uptime.load(Ordering::Relaxed).to_string()
            };
            Router::new()
                .route("/slow/{seconds}", get(slow))
                .route("/uptime", get(show))
                .with_state(uptime)
        }

        async fn ask(service: &Router, path: &str) -> (StatusCode, String) {
            let request = Request::get(path).body(Body::empty()).expect("a path");
            let response = service.clone().oneshot(request).await.expect("an answer");
            let status = response.status();
            let body = axum::body::to_bytes(response.into_body(), 1000).await.expect("a body");
            (status, String::from_utf8(body.to_vec()).expect("a text"))
        }

        #[tokio::test(start_paused = true)]
        async fn a_request_ends_at_its_deadline() {
            let service = service();
            assert_eq!(ask(&service, "/slow/29").await, (StatusCode::OK, "29".into()));
            let late = ask(&service, "/slow/3600").await;
            assert_eq!(late, (StatusCode::GATEWAY_TIMEOUT, "30".into()));
        }

        #[tokio::test(start_paused = true)]
        async fn the_uptime_advances_with_the_clock() {
            let service = service();
            assert_eq!(ask(&service, "/slow/10").await.0, StatusCode::OK);
            tokio::task::yield_now().await;
            assert_eq!(ask(&service, "/uptime").await, (StatusCode::OK, "11".into()));
            for _ in 0..5 {
                time::advance(SECOND).await;
                tokio::task::yield_now().await;
            }
            assert_eq!(ask(&service, "/uptime").await, (StatusCode::OK, "16".into()));
        }

        #[tokio::test(start_paused = true)]
        async fn a_layer_on_tokios_timers_agrees() {
            let begin = time::Instant::now();
            let layer = tower::timeout::TimeoutLayer::new(20 * SECOND);
            let service = tower::ServiceBuilder::new().layer(layer).service(service());
            let request = |path| Request::get(path).body(Body::empty()).expect("a path");
            let quick = service.clone().oneshot(request("/slow/19")).await.expect("in time");
            assert_eq!((quick.status(), begin.elapsed()), (StatusCode::OK, 19 * SECOND));
            assert!(service.oneshot(request("/slow/21")).await.is_err());
            assert_eq!(begin.elapsed(), 39 * SECOND);
        }

        #[tokio::test(start_paused = true)]
        async fn a_socket_works_on_the_paused_clock() {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            let service = service();
            tokio::spawn(async move { axum::serve(listener, service).await });
            let mut socket = tokio::net::TcpStream::connect(address).await.expect("it listens");
            let request = b"GET /slow/25 HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
            socket.write_all(request).await.expect("it reads");
            let mut answer = String::new();
            socket.read_to_string(&mut answer).await.expect("it answers");
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("25"), "{answer}");
        }
    };
}

mod theirs {
    use tokio::time;
    service_and_tests!();
}

mod ours {
    use tickless::tokio_time as time;
    service_and_tests!();
}
