import { readConfig } from '../../../src/config/config.js'
import { type OpenPod, openPod } from '../../../src/pod/open-pod.js'
import { fixedKeyCrypto } from './fixed-key-crypto.js'

/** Opens the database and the queue of a pod whose processes run with these settings. */
export function openPodBySettings(settings: NodeJS.ProcessEnv): Promise<OpenPod> {
  return openPod(readConfig({ ...settings, LOG_LEVEL: 'silent' }), 'command', { crypto: fixedKeyCrypto() })
}
