import type { Power } from '../../domain/accounts/role-powers.js'

/** A page of the console that the navigation links to. */
export interface ConsoleSection {
  readonly path: string
  readonly label: string
  readonly group: 'Moderation' | 'Operation'
  /** The power that the page needs. */
  readonly power: Power
}

/** The pages that the navigation links to, in its order. */
export const CONSOLE_SECTIONS: readonly ConsoleSection[] = [
  { path: '/admin', label: 'Overview', group: 'Moderation', power: 'moderation' },
  { path: '/admin/reports', label: 'Reports', group: 'Moderation', power: 'moderation' },
  { path: '/admin/people', label: 'People', group: 'Moderation', power: 'moderation' },
  { path: '/admin/pods', label: 'Pods', group: 'Moderation', power: 'moderation' },
  { path: '/admin/rules', label: 'Rules for pods', group: 'Moderation', power: 'moderation' },
  { path: '/admin/filters', label: 'Filters', group: 'Moderation', power: 'moderation' },
  { path: '/admin/clusters', label: 'Spam clusters', group: 'Moderation', power: 'moderation' },
  { path: '/admin/sign-ups', label: 'Sign-ups', group: 'Moderation', power: 'moderation' },
  { path: '/admin/invitations', label: 'Invitations', group: 'Moderation', power: 'moderation' },
  { path: '/admin/network-rules', label: 'Networks and e-mail', group: 'Moderation', power: 'moderation' },
  { path: '/admin/audit', label: 'Audit log', group: 'Moderation', power: 'moderation' },
  { path: '/admin/roles', label: 'Roles', group: 'Moderation', power: 'administration' },
  { path: '/admin/queues', label: 'Queues', group: 'Operation', power: 'administration' },
  { path: '/admin/dead-letters', label: 'Dead letters', group: 'Operation', power: 'administration' },
  { path: '/admin/quarantine', label: 'Rejected messages', group: 'Operation', power: 'administration' },
  { path: '/admin/workers', label: 'Processes', group: 'Operation', power: 'administration' },
  { path: '/admin/database', label: 'Database', group: 'Operation', power: 'administration' },
  { path: '/admin/storage', label: 'Storage', group: 'Operation', power: 'administration' },
  { path: '/admin/checks', label: 'Checks', group: 'Operation', power: 'administration' },
  { path: '/admin/settings', label: 'Settings', group: 'Operation', power: 'administration' },
]
