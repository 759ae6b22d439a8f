//! A QUIC echo server and its client, with idle timeouts and keep-alives on Tickless.

use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TransportConfig};
use std::error::Error;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;
use tickless_quinn::TicklessRuntime;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const IDLE: Duration = Duration::from_millis(300);
const KEEP_ALIVE: Duration = Duration::from_millis(100);

fn configs() -> Result<(ClientConfig, ServerConfig)> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let server = ServerConfig::with_single_cert(vec![made.cert.der().clone()], key.into())?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone())?;
    Ok((ClientConfig::with_root_certificates(Arc::new(roots))?, server))
}

fn transport(keep_alive: Option<Duration>) -> Result<Arc<TransportConfig>> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IDLE.try_into()?)).keep_alive_interval(keep_alive);
    Ok(Arc::new(transport))
}

fn endpoint(config: Option<ServerConfig>) -> Result<Endpoint> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let runtime = Arc::new(TicklessRuntime::on_tokio()?);
    Ok(Endpoint::new(EndpointConfig::default(), config, socket, runtime)?)
}

/// Echoes until the client closes the connection or the connection times out.
async fn echo(connection: Connection) {
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let Ok(received) = receive.read_to_end(1 << 16).await else { return };
        if send.write_all(&received).await.is_err() || send.finish().is_err() {
            return;
        }
    }
}

async fn ask(connection: &Connection, words: &str) -> Result<String> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(words.as_bytes()).await?;
    send.finish()?;
    Ok(String::from_utf8(receive.read_to_end(1 << 16).await?)?)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let (mut client_config, mut server_config) = configs()?;
    server_config.transport_config(transport(None)?);
    let server = endpoint(Some(server_config))?;
    let address = server.local_addr()?;
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            if let Ok(connection) = incoming.await {
                tokio::spawn(echo(connection));
            }
        }
    });

    let client = endpoint(None)?;
    client_config.transport_config(transport(Some(KEEP_ALIVE))?);
    let kept = client.connect_with(client_config.clone(), address, "localhost")?.await?;
    println!("heard: {}", ask(&kept, "hello").await?);
    tickless::future::sleep(3 * IDLE).await;
    println!("kept alive, after {:?}: {}", 3 * IDLE, ask(&kept, "still there").await?);

    client_config.transport_config(transport(None)?);
    let idle = client.connect_with(client_config, address, "localhost")?.await?;
    println!("left alone for {IDLE:?}: {}", idle.closed().await);
    assert_eq!(idle.close_reason(), Some(quinn::ConnectionError::TimedOut));
    kept.close(0_u32.into(), b"done");
    client.wait_idle().await;
    Ok(())
}
