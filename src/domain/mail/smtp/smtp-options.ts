import { isIP } from 'node:net'
import type { SMTPTransportOptions } from 'nodemailer/lib/smtp-transport'
import type { MailSettings } from '../../../config/mail-settings.js'
import { MAIL_LIMITS } from '../limits.js'

export interface SmtpServer {
  readonly host: string
  readonly port: number
  /** TLS from the first byte. */
  readonly isSecure: boolean
  readonly isLoopback: boolean
  readonly requireTLS: boolean
  readonly auth: { readonly user: string; readonly pass: string } | undefined
}

/** Reads SMTP_URL. */
export function readSmtpUrl(text: string): SmtpServer {
  const url = new URL(text)
  const isSecure = url.protocol === 'smtps:'
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const isLoopback = host === 'localhost' || host === '::1' || /^127\./.test(host)
  const shouldIgnoreTls = url.searchParams.get('ignoreTLS') === 'true'
  return {
    host,
    isSecure,
    isLoopback,
    port: Number(url.port) || (isSecure ? 465 : 587),
    requireTLS: !isSecure && !isLoopback && !shouldIgnoreTls,
    auth:
      url.username === ''
        ? undefined
        : { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) },
  }
}

/**
 * Without TLS nothing is sent to another machine, credentials included. On this machine a certificate proves nothing, and those of
 * mail servers there are usually self-signed.
 */
export function smtpOptions({ url }: Pick<MailSettings, 'url'>, clientName: string): SMTPTransportOptions {
  const { host, port, isSecure, isLoopback, requireTLS, auth } = readSmtpUrl(url)
  return {
    host,
    port,
    secure: isSecure,
    requireTLS,
    name: clientName,
    ...(auth && { auth }),
    tls: { rejectUnauthorized: !isLoopback, ...(isIP(host) === 0 && { servername: host }) },
    disableFileAccess: true,
    disableUrlAccess: true,
    connectionTimeout: MAIL_LIMITS.connectMs,
    greetingTimeout: MAIL_LIMITS.connectMs,
    socketTimeout: MAIL_LIMITS.inactiveMs,
  }
}
