/** They differ in what they wait for, so that an operator can scale and pause them apart. */
export const QUEUES = [
  'inbound',
  'inbound-private',
  'fetch',
  'fetch-unproven',
  'outbound',
  'outbound-slow',
  'relay',
  'notify',
  'mail',
  'photos',
  'maintenance',
] as const

export type QueueName = (typeof QUEUES)[number]

export function isQueueName(text: string): text is QueueName {
  return (QUEUES as readonly string[]).includes(text)
}
