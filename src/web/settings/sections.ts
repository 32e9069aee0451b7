import { findRelyingParty } from '../../domain/accounts/factors/relying-party.js'
import type { MessageId } from '../../languages/translate.js'
import type { Services } from '../../services/services.js'

/** A page of settings that the navigation links to. */
export interface SettingsSection {
  readonly path: string
  readonly label: Extract<MessageId, `settings.${string}`>
}

const PASSKEYS = '/settings/passkeys'

const SETTINGS_SECTIONS: readonly SettingsSection[] = [
  { path: '/settings', label: 'settings.overview' },
  { path: '/settings/profile', label: 'settings.profile' },
  { path: '/settings/sharing', label: 'settings.sharing' },
  { path: '/settings/following', label: 'settings.following' },
  { path: '/settings/blocks', label: 'settings.blocks' },
  { path: '/settings/email', label: 'settings.email' },
  { path: '/settings/mail', label: 'settings.mail' },
  { path: '/settings/password', label: 'settings.password' },
  { path: '/settings/two_factor', label: 'settings.two_factor' },
  { path: PASSKEYS, label: 'settings.passkeys' },
  { path: '/settings/sessions', label: 'settings.sessions' },
  { path: '/settings/applications', label: 'settings.applications' },
  { path: '/settings/invitations', label: 'settings.invitations' },
  { path: '/settings/notices', label: 'settings.notices' },
  { path: '/settings/data', label: 'settings.data' },
  { path: '/settings/export', label: 'settings.export' },
  { path: '/settings/import', label: 'settings.import' },
  { path: '/settings/close', label: 'settings.close' },
]

/** The pages that this pod has. */
export function listSections(services: Pick<Services, 'config'>): readonly SettingsSection[] {
  const hasPasskeys = findRelyingParty(services) !== undefined
  return SETTINGS_SECTIONS.filter(({ path }) => path !== PASSKEYS || hasPasskeys)
}
