package airflow_cdc_provider.logstore;

import com.google.cloud.hadoop.repackaged.gcs.com.google.auth.oauth2.GoogleCredentials;
import com.google.cloud.hadoop.repackaged.gcs.com.google.auth.oauth2.ServiceAccountCredentials;
import com.google.cloud.hadoop.util.AccessTokenProvider;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import org.apache.hadoop.conf.Configuration;

/**
 * Access tokens of the service account whose key is a Hadoop setting, by Google's own library. (The connector itself
 * reads keys from files only, and executors have no such file.)
 *
 * Compiled with Spark's Janino, which does not support generics: hence the casts.
 */
public final class ServiceAccountTokens implements AccessTokenProvider {
    private static final String KEY = "fs.gs.airflow.cdc.service.account.key";
    private static final String SCOPE = "https://www.googleapis.com/auth/devstorage.full_control";

    private Configuration configuration;
    private GoogleCredentials credentials;

    public synchronized AccessTokenProvider.AccessToken getAccessToken() {
        try {
            credentials.refreshIfExpired();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return new AccessTokenProvider.AccessToken(
            credentials.getAccessToken().getTokenValue(),
            credentials.getAccessToken().getExpirationTime().toInstant()
        );
    }

    public synchronized void refresh() throws IOException {
        credentials.refresh();
    }

    public synchronized void setConf(Configuration configuration) {
        this.configuration = configuration;
        try {
            byte[] key = configuration.get(KEY, "{}").getBytes(StandardCharsets.UTF_8);
            GoogleCredentials unscoped = ServiceAccountCredentials.fromStream(new ByteArrayInputStream(key));
            credentials = unscoped.createScoped(Collections.singleton(SCOPE));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    public Configuration getConf() {
        return configuration;
    }
}
