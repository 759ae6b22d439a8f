//! A client of a service that hangs, then fails, then answers. The timeout of an attempt and the
//! backoff between attempts use Tickless timers. The runtime is tokio's, without its own timers.
//! Clients generated for AWS services take the same `sleep_impl`.

// The example panics where a program would handle an error.
#![allow(clippy::print_stdout, clippy::expect_used)]

use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime::client::retries::classifiers::{
    HttpStatusCodeClassifier, TransientErrorClassifier,
};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse, OrchestratorError};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use std::{error, fmt, io};
use tickless_smithy::TicklessSleep;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ATTEMPT: Duration = Duration::from_millis(200);

#[derive(Debug)]
struct Tcp(String);

impl HttpConnector for Tcp {
    fn call(&self, _: HttpRequest) -> HttpConnectorFuture {
        let address = self.0.clone();
        HttpConnectorFuture::new(async move {
            let said = async {
                let mut stream = tokio::net::TcpStream::connect(address).await?;
                stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
                let mut said = String::new();
                stream.read_to_string(&mut said).await?;
                io::Result::Ok(said)
            };
            let said = said.await.map_err(|error| ConnectorError::io(error.into()))?;
            let status: Option<u16> = said.get(9..12).and_then(|code| code.parse().ok());
            let status = status.and_then(|code| code.try_into().ok());
            let no_http = || ConnectorError::other("that is no HTTP".into(), None);
            let body = said.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            Ok(HttpResponse::new(status.ok_or_else(no_http)?, SdkBody::from(body)))
        })
    }
}

#[derive(Debug)]
struct Unavailable;

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the service is unavailable")
    }
}

impl error::Error for Unavailable {}

fn serve(listener: &std::net::TcpListener) -> io::Result<()> {
    let (_hangs, _) = listener.accept()?;
    for answer in ["503 Busy\r\n\r\n", "200 OK\r\n\r\nready"] {
        let (mut stream, _) = listener.accept()?;
        let _ = stream.read(&mut [0; 1024])?;
        write!(stream, "HTTP/1.0 {answer}")?;
    }
    Ok(())
}

fn main() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let server = std::thread::spawn(move || serve(&listener));

    let connector = SharedHttpConnector::new(Tcp(address.clone()));
    let status = Operation::builder()
        .service_name("flaky")
        .operation_name("status")
        .http_client(http_client_fn(move |_, _| connector.clone()))
        .endpoint_url(&format!("http://{address}"))
        .no_auth()
        .standard_retry(&RetryConfig::standard().with_initial_backoff(Duration::from_millis(50)))
        .retry_classifier(HttpStatusCodeClassifier::default())
        .retry_classifier(TransientErrorClassifier::<Unavailable>::new())
        .timeout_config(TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT).build())
        .sleep_impl(TicklessSleep::of_process().expect("the system starts threads"))
        .serializer(|()| Ok(HttpRequest::empty()))
        .deserializer::<String, Unavailable>(|response| {
            if !response.status().is_success() {
                return Err(OrchestratorError::operation(Unavailable));
            }
            Ok(String::from_utf8_lossy(response.body().bytes().unwrap_or(&[])).into_owned())
        })
        .build();

    let begun = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let answer = runtime.expect("a runtime").block_on(status.invoke(()));
    let took = begun.elapsed();
    println!("{answer:?} after {took:?}");
    assert_eq!(answer.expect("the third attempt succeeds"), "ready");
    assert!(took >= ATTEMPT, "the first attempt hangs");
    server.join().expect("the server does not panic").expect("the server does not fail");
}
