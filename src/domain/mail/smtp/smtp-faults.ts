/** The meaning of a failed attempt to send a mail. */
export type SmtpFault =
  /** Another attempt may succeed. */
  | { readonly kind: 'temporary'; readonly code: number | undefined; readonly fault: string }
  /** The mailbox does not exist. */
  | { readonly kind: 'no_mailbox'; readonly code: number | undefined; readonly fault: string }
  /** This mail was refused permanently, for another reason. */
  | { readonly kind: 'refused'; readonly code: number | undefined; readonly fault: string }
  /** The server refuses this pod: only its operator can repair that. */
  | { readonly kind: 'operator'; readonly code: number | undefined; readonly fault: string }

/** An error of the library, as far as it is read here. */
interface SmtpError {
  readonly code?: string
  readonly originalCode?: string
  readonly responseCode?: number
  readonly response?: string
  readonly command?: string
}

/** Errors of certificates come as errors of the socket. */
const TLS_ERROR = /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|EPROTO)/

/** Classifies by code, command and status; texts of servers differ. */
export function readSmtpFault(thrown: unknown): SmtpFault {
  const error: SmtpError = typeof thrown === 'object' && thrown !== null ? thrown : {}
  const { code = 'unknown', originalCode = '', responseCode, response = '', command = '' } = error
  const status = /^[0-9]{3}[ -]([245]\.[0-9]{1,3}\.[0-9]{1,3})/.exec(response)?.[1] ?? ''
  const isPermanent = responseCode !== undefined && responseCode >= 500
  const is = (kind: SmtpFault['kind'], fault: string): SmtpFault => ({ kind, code: responseCode, fault })
  if (code === 'ETLS' || TLS_ERROR.test(originalCode)) return is('operator', 'tls')
  if (code === 'EAUTH' || code === 'ENOAUTH') {
    return responseCode !== undefined && !isPermanent ? is('temporary', 'auth') : is('operator', 'auth')
  }
  if (!isPermanent) return is('temporary', code.toLowerCase())
  if (responseCode === 530 || status.startsWith('5.7.')) return is('operator', 'policy')
  if (command === 'RCPT TO')
    return status.startsWith('5.1.') ? is('no_mailbox', 'no_mailbox') : is('refused', 'refused')
  if (command === 'MAIL FROM') return is('operator', 'sender')
  return command === 'DATA' || command === '' ? is('refused', 'refused') : is('operator', command.toLowerCase())
}
