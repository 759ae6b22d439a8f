//! QUIC endpoints with idle timeouts of minutes, in virtual time. Both ends are quinn's own, over a
//! network in memory. `examples/quic_echo.rs` has timeouts on real sockets.

#[path = "../../support/in_virtual_time.rs"]
mod in_virtual_time;
mod network;

use in_virtual_time::in_virtual_time;
use network::Network;
use quinn::{ClientConfig, Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TransportConfig};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tickless::VirtualTime;
use tickless_quinn::{RuntimeError, TicklessRuntime};

const MINUTE: Duration = Duration::from_secs(60);

fn transport(keep_alive: Option<Duration>) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let idle = IdleTimeout::try_from(5 * MINUTE).expect("in range");
    transport.max_idle_timeout(Some(idle)).keep_alive_interval(keep_alive);
    Arc::new(transport)
}

/// Returns a client and a server, whose connections time out after five idle minutes.
fn endpoints(
    time: &VirtualTime,
    keep_alive: Option<Duration>,
    network: &Network,
) -> (Endpoint, Endpoint) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let chain = vec![made.cert.der().clone()];
    let mut server = ServerConfig::with_single_cert(chain, key.into()).expect("a pair");
    server.transport_config(transport(None));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("set up");
    config.transport_config(transport(keep_alive));
    let endpoint = |port, server| {
        let runtime = TicklessRuntime::on_tokio_with(time).expect("the test is in tokio");
        let socket = network.socket(SocketAddr::from(([127, 0, 0, 1], port)));
        let made = Endpoint::new_with_abstract_socket(
            EndpointConfig::default(),
            server,
            socket,
            Arc::new(runtime),
        );
        made.expect("an endpoint")
    };
    let mut client = endpoint(1, None);
    client.set_default_client_config(config);
    (client, endpoint(2, Some(server)))
}

async fn connect(client: &Endpoint, server: &Endpoint) -> (quinn::Connection, quinn::Connection) {
    let to = server.local_addr().expect("bound");
    let connecting = client.connect(to, "localhost").expect("well set up");
    let accepting = async { server.accept().await.expect("open").await.expect("shaken hands") };
    let (connected, accepted) = tokio::join!(connecting, accepting);
    (connected.expect("connected"), accepted)
}

#[test]
fn idle_connections_time_out() {
    in_virtual_time(|time| async move {
        let network = Network::default();
        let (client, server) = endpoints(&time, None, &network);
        let (connected, accepted) = connect(&client, &server).await;
        let begin = time.now();
        assert_eq!(connected.closed().await, quinn::ConnectionError::TimedOut);
        assert_eq!(accepted.closed().await, quinn::ConnectionError::TimedOut);
        let took = time.now() - begin;
        // The last packets of the handshake arrive shortly after `connect` has returned.
        assert!(took >= 5 * MINUTE && took <= 5 * MINUTE + Duration::from_secs(2), "{took:?}");
    });
}

#[test]
fn keep_alives_hold_a_connection_for_hours() {
    in_virtual_time(|time| async move {
        let network = Network::default();
        let (client, server) = endpoints(&time, Some(4 * MINUTE), &network);
        let (connected, accepted) = connect(&client, &server).await;
        time.timers().sleep(600 * MINUTE).await;
        let mut sent = connected.open_uni().await.expect("still open");
        sent.write_all(b"still there").await.expect("open");
        sent.finish().expect("open");
        let mut received = accepted.accept_uni().await.expect("still open");
        assert_eq!(received.read_to_end(100).await.expect("all"), b"still there");
    });
}

#[test]
fn a_thread_outside_tokio_can_use_an_endpoint() {
    let error = TicklessRuntime::on_tokio().expect_err("there is no runtime here");
    assert!(matches!(error, RuntimeError::OutsideOfTokio));
    assert!(error.to_string().contains("Runtime::enter"), "{error}");

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_io()
        .build()
        .expect("a runtime");
    let made = {
        let _entered = runtime.enter();
        TicklessRuntime::on_tokio().expect("the thread has entered a runtime")
    };
    // The thread has left the runtime.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(made));
    let endpoint = endpoint.expect("each call enters the runtime");
    endpoint.close(0_u32.into(), b"");
    runtime.block_on(endpoint.wait_idle());
}
