/** Sign-in of users and authorization of clients. */
export const OIDC_LIMITS = {
  /** A form has a few hundred bytes; a long list of redirect addresses fits. */
  bodyBytes: 16 * 1024,
  /** A text about oneself has up to 65 535 characters, each of which a form writes with up to nine bytes. */
  settingsBodyBytes: 640 * 1024,
  /** Lifetime of an access token, as on diaspora*: clients refresh once a day. */
  accessTokenSeconds: 86_400,
  /** A client exchanges its code at once; RFC 6749 recommends ten minutes at most. */
  codeSeconds: 600,
  /** A client reads it once, after the exchange. */
  idTokenSeconds: 1_800,
  /** Since the last use. */
  refreshTokenSeconds: 400 * 86_400,
  /** The last use is written at most this often. */
  refreshTokenUseSeconds: 86_400,
  /** Time to find the password or to create an account first. */
  interactionSeconds: 3_600,
  /** Pending authorization requests in total; the oldest without a sign-in are deleted first. */
  interactions: 5_000,
  /** Pending authorization requests of one browser; a new one replaces the oldest. */
  requestsOfBrowser: 8,
  /** New authorization requests of a web process between two checks of the total. */
  interactionsBetweenTrims: 50,
  /** `state`, and `nonce`. */
  stateBytes: 1_024,
  /** A session ends two weeks after the last sign-in to this pod or to an application. */
  sessionSeconds: 14 * 86_400,
  /** Browsers keep no cookie for longer. */
  browserCookieSeconds: 400 * 86_400,
  /** The period of SIGN_IN_LIMIT. */
  signInsPerSeconds: 300,
  /** The period of CLIENT_LIMIT. */
  clientsPerSeconds: 3_600,
  /** The period of TOKEN_LIMIT. */
  tokensPerSeconds: 60,
  /** The period of AUTHORIZATION_LIMIT. */
  authorizationsPerSeconds: 300,
  /** Wrong passwords of one network address for one account. Each further one doubles the delay. */
  wrongPasswords: 5,
  /** Seconds until the attempt after `wrongPasswords`. */
  firstWaitSeconds: 5,
  /** The delay is not doubled beyond this: a person who remembers the password is not locked out for the day. */
  maxWaitSeconds: 900,
  /** Network addresses counted at the same time, for each of these. */
  sources: 20_000,
} as const
