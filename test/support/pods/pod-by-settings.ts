import { readConfig } from '../../../src/config/config.js'
import { type OpenServices, openServices } from '../../../src/services/open-services.js'
import { fixedKeyCrypto } from './fixed-key-crypto.js'

/** Opens the database and the queue of a pod whose processes run with these settings. */
export function openPodBySettings(settings: NodeJS.ProcessEnv): Promise<OpenServices> {
  return openServices(readConfig({ ...settings, LOG_LEVEL: 'silent' }), 'command', { crypto: fixedKeyCrypto() })
}
