//! `web_fetch`: a text from the web, from hosts that the policy permits, at every redirect.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, Url};
use serde::Deserialize;

use super::{LONGEST_RESULT, ToolResult, Toolbox, cut, page};
use crate::policy::{Access, Denial, is_private};
use crate::redact::Redactor;

/// How often a server may send us elsewhere.
const REDIRECTS: usize = 5;
/// How long it may take, all in all.
const LONGEST: Duration = Duration::from_secs(30);
/// How much is read at most, in bytes.
const LARGEST: usize = 2 * 1024 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fetch {
    pub(super) url: String,
}

pub(super) async fn fetch(tools: &Toolbox, input: Fetch) -> Result<ToolResult, ToolResult> {
    let mut url = Url::parse(input.url.trim()).map_err(|error| {
        let shown = tools.redactor.shown(&input.url, 200);
        ToolResult::error(format_args!("{shown} is no address: {error}"))
    })?;
    for _ in 0..=REDIRECTS {
        let is_named = permitted(tools, &url).await?;
        // Only now, since a person may take long to answer.
        let answer = tokio::time::timeout(LONGEST, get(&url, is_named, &tools.redactor))
            .await
            .unwrap_or_else(|_| {
                Err(ToolResult::error(format_args!(
                    "no answer within {} s",
                    LONGEST.as_secs()
                )))
            })?;
        match answer {
            Answer::Text(result) => return Ok(result),
            Answer::Elsewhere(next) => url = next,
        }
    }
    Err(ToolResult::error(format_args!("more than {REDIRECTS} redirects")))
}

/// Asks the policy about an address. Gives whether a rule names its host, so that it may be one of our own network.
async fn permitted(tools: &Toolbox, url: &Url) -> Result<bool, ToolResult> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ToolResult::error(format_args!(
            "refused: only http and https addresses are fetched, not {}",
            url.scheme()
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ToolResult::error(
            "refused: an address with a user name or password in it",
        ));
    }
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    tools
        .gate
        .pass("web_fetch", Access::Network { host, port })
        .await?;
    Ok(tools.gate.policy().names_host(host, port))
}

enum Answer {
    Text(ToolResult),
    Elsewhere(Url),
}

async fn get(url: &Url, is_named: bool, redactor: &Redactor) -> Result<Answer, ToolResult> {
    if !is_named {
        stays_outside(url.host_str().unwrap_or_default()).await?;
    }
    let client = match is_named {
        true => &*ANY,
        false => &*PUBLIC,
    };
    let client = client
        .as_ref()
        .map_err(|error| ToolResult::error(format_args!("no HTTP client: {error}")))?;
    let mut response = client
        .get(url.clone())
        .header(
            "accept",
            "text/html, text/plain, text/*;q=0.9, application/json;q=0.9, */*;q=0.1",
        )
        .send()
        .await
        .map_err(|error| failed(&error))?;
    let status = response.status();
    if status.is_redirection()
        && let Some(location) = response.headers().get(LOCATION)
    {
        let next = location
            .to_str()
            .ok()
            .and_then(|location| url.join(location).ok());
        return next
            .map(Answer::Elsewhere)
            .ok_or_else(|| ToolResult::error("the server redirects to what is no address"));
    }
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("text/plain")
        .to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_owned();
    if !is_text(&kind) {
        return Err(ToolResult::error(format_args!(
            "{url} is {}, which is no text",
            redactor.shown(&kind, 100)
        )));
    }
    let (mut body, mut read) = (String::new(), redactor.bytes());
    let (mut room, mut is_cut) = (LARGEST, false);
    while let Some(piece) = response.chunk().await.map_err(|error| failed(&error))? {
        body.push_str(&read.push(&piece[..piece.len().min(room)]));
        if piece.len() > room {
            is_cut = true;
            break;
        }
        room -= piece.len();
    }
    if !is_cut {
        body.push_str(&read.finish());
    }
    let page = match kind.as_str() {
        // Once more: what markup divides is one word in the text.
        "text/html" | "application/xhtml+xml" => redactor.redact(&page::as_text(&body)).into_owned(),
        _ => body,
    };
    let kept = cut(&page, LONGEST_RESULT);
    let mut text = format!("{url}\n\n{kept}");
    if is_cut || kept.len() < page.len() {
        text.push_str("\n(cut here)");
    }
    if !status.is_success() {
        text = format!("the server answered {status}\n{text}");
    }
    Ok(Answer::Text(ToolResult {
        text,
        is_error: !status.is_success(),
    }))
}

fn is_text(kind: &str) -> bool {
    kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || matches!(
            kind,
            "application/json"
                | "application/xml"
                | "application/javascript"
                | "application/ecmascript"
                | "application/yaml"
                | "application/x-yaml"
                | "application/toml"
                | "application/x-ndjson"
                | "application/sql"
        )
}

/// What went wrong, down to the cause.
fn failed(error: &reqwest::Error) -> ToolResult {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    ToolResult::error(text)
}

/// For hosts that are not named by a rule: names that lead to this machine or its network are refused where the connection
/// is made, so that a name can't mean one address when it is asked about and another when it is used.
static PUBLIC: LazyLock<Result<Client, reqwest::Error>> = LazyLock::new(|| {
    client()
        .dns_resolver(Arc::new(PublicOnly {
            proxies: proxy_hosts(),
        }))
        .build()
});

/// For hosts that a rule names.
static ANY: LazyLock<Result<Client, reqwest::Error>> = LazyLock::new(|| client().build());

fn client() -> reqwest::ClientBuilder {
    // Redirects are followed here, after a look at where they lead; no connection outlives its use for long.
    crate::http::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .pool_max_idle_per_host(0)
}

/// Refuses a name that leads to this machine or its network. Where a proxy makes the connection, it finds the address and
/// [`PublicOnly`] is not asked; a name that only the proxy knows is left to it.
async fn stays_outside(host: &str) -> Result<(), Denial> {
    let Ok(mut found) = tokio::net::lookup_host((host.trim_matches(['[', ']']), 0)).await else {
        return Ok(());
    };
    match found.any(|address| is_private(address.ip())) {
        true => Err(Denial::PrivateAddress(host.to_owned())),
        false => Ok(()),
    }
}

/// Finds addresses of hosts, public ones only.
struct PublicOnly {
    /// The user's own proxies may be anywhere.
    proxies: HashSet<String>,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_ascii_lowercase();
        let is_proxy = self.proxies.contains(&host);
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            if !is_proxy && found.iter().any(|address| is_private(address.ip())) {
                return Err(Denial::PrivateAddress(host).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn proxy_hosts() -> HashSet<String> {
    [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ]
    .iter()
    .filter_map(|name| std::env::var(name).ok())
    .filter_map(|value| {
        let url = Url::parse(&value)
            .or_else(|_| Url::parse(&format!("http://{value}")))
            .ok()?;
        Some(url.host_str()?.to_ascii_lowercase())
    })
    .filter(|host| host.parse::<IpAddr>().is_err())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_is_looked_at_before_a_proxy_is_asked_for_it() {
        for host in ["localhost", "127.0.0.1", "[::1]"] {
            assert_eq!(
                stays_outside(host).await,
                Err(Denial::PrivateAddress(host.to_owned()))
            );
        }
        // One that only the proxy may know.
        assert_eq!(stays_outside("nowhere.invalid").await, Ok(()));
    }
}
