import { Counter, type Registry } from 'prom-client'

const rateLimited = new Counter({
  name: 'pod_rate_limited_total',
  help: 'Requests answered with 429, by the limit they exceeded.',
  labelNames: ['limit'],
  registers: [],
})

const signInFailures = new Counter({
  name: 'pod_sign_in_failures_total',
  help: 'Failed sign-ins, by cause. throttled: too many wrong passwords before it, so the password was not checked.',
  labelNames: ['cause'],
  registers: [],
})

export type RateLimitName =
  | 'sign_ins'
  | 'password_resets'
  | 'wrong_passwords'
  | 'client_registrations'
  | 'token_requests'
  | 'authorizations'
  | 'pages'
  | 'anonymous_look_ups'
  | 'writes'
  | 'uploads'
  | 'searches'
  | 'streams'
  | 'inbound_bytes'

export function countRateLimited(limit: RateLimitName): void {
  rateLimited.inc({ limit })
}

export function countSignInFailure(cause: 'credentials' | 'throttled'): void {
  signInFailures.inc({ cause })
}

export function registerRejectionMetrics(registry: Registry): void {
  registry.registerMetric(rateLimited)
  registry.registerMetric(signInFailures)
}
