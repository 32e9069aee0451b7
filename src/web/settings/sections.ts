import { relyingPartyOf } from '../../domain/accounts/factors/relying-party.js'
import type { Pod } from '../../pod/pod.js'

/** A page of settings that the navigation links to. */
export interface SettingsSection {
  readonly path: string
  readonly label: string
}

const PASSKEYS = '/settings/passkeys'

const SETTINGS_SECTIONS: readonly SettingsSection[] = [
  { path: '/settings', label: 'Overview' },
  { path: '/settings/profile', label: 'Profile' },
  { path: '/settings/sharing', label: 'Sharing' },
  { path: '/settings/blocks', label: 'Blocked people' },
  { path: '/settings/email', label: 'E-mail address' },
  { path: '/settings/mail', label: 'Mail' },
  { path: '/settings/password', label: 'Password' },
  { path: '/settings/two_factor', label: 'Second factor' },
  { path: PASSKEYS, label: 'Passkeys' },
  { path: '/settings/sessions', label: 'Browsers' },
  { path: '/settings/applications', label: 'Applications' },
  { path: '/settings/notices', label: 'Notices' },
  { path: '/settings/export', label: 'Export' },
  { path: '/settings/close', label: 'Close the account' },
]

/** The pages that this pod has. */
export function sectionsOf(pod: Pick<Pod, 'config'>): readonly SettingsSection[] {
  const hasPasskeys = relyingPartyOf(pod) !== undefined
  return SETTINGS_SECTIONS.filter(({ path }) => path !== PASSKEYS || hasPasskeys)
}
